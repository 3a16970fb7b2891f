sed -n '/"groups"/,/^  \]/p' glossary/before/report.json glossary/after/report.json summaries/before/report.json summaries/after/report.json
printf '{"glossary": {"verdict": "improved", "delta": 0.46875, "fell": ["sort-order"]}, "summaries": {"verdict": "inconclusive", "delta": 0.0625, "fell": ["contract"]}}\n' > verdicts.json
