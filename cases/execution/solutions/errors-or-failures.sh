grep -o '"key": "[^"]*"\|"outcome": "[a-z]*"\|"class": "[a-z_]*"' results/report.json
cat > triage.json <<'JSON'
{"failed": ["execution:crop-margins:self-load:3", "execution:join-scans:self-load:1", "execution:join-scans:self-load:3", "execution:redact-names:self-load:4"],
 "error": {"network": 1, "overloaded": 2, "rate_limit": 2},
 "missing": ["execution:join-scans:self-load:5", "execution:redact-names:self-load:5"],
 "passed": 14, "n": 18, "verdict_possible": false}
JSON
