cat docs/evals.md .github/workflows/tests.yml
cat > .github/workflows/evals.yml <<'FLOW'
name: evals
on:
  pull_request:
permissions:
  contents: read
jobs:
  evals:
    runs-on: ubuntu-24.04
    timeout-minutes: 45
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.13"}
      - run: python -m pip install pytest-skilleval
      - name: Measure the skill
        env:
          ANTHROPIC_API_KEY: ${{ secrets.EVALS_KEY }}
        run: >
          pytest --skilleval-lane=execution --skilleval-provider=claude --trials 6 -n 3
          --compare-baseline=baselines/main/report.json --skilleval-gate=regression
          --skilleval-budget=usd=4 --skilleval-output=eval-runs
      - uses: actions/upload-artifact@v4
        if: always()
        with: {name: eval-runs, path: eval-runs, retention-days: 21}
FLOW
