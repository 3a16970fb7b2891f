ls eval-runs/*
grep -o '"argv":\[[^]]*\]' eval-runs/20261109T053500Z-b41c/plan.json
grep -ho '"case":"[^"]*","category\|"condition":"[^"]*"\|"outcome":"[^"]*"\|"trial":[0-9]*}' eval-runs/20261109T053500Z-b41c/trials/*/record.json
cat > next.json <<'JSON'
{"command": "pytest --skilleval-lane=execution --skilleval-condition=none --skilleval-condition=self-load --trials 3 -n 4 --skilleval-provider claude --skilleval-output eval-runs --skilleval-resume=20261109T053500Z-b41c",
 "left": ["execution:credit-note:none:3", "execution:credit-note:self-load:2", "execution:credit-note:self-load:3",
  "execution:scanned-page:none:2", "execution:scanned-page:none:3",
  "execution:scanned-page:self-load:1", "execution:scanned-page:self-load:2", "execution:scanned-page:self-load:3"]}
JSON
