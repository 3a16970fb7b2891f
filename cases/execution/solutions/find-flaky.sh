sed -n '/"groups"/,/^  \]/p' results/report.json
printf '{"flaky": "rotate-window", "flip_rate": 0.6, "never": "parse-stack", "unmeasured": "tail-follow"}\n' > triage.json
