cat notes/first-eval.md skills/csv-cleaner/SKILL.md pyproject.toml
mkdir -p cases/execution/solutions
cat > cases/execution/trim-header.yaml <<'CASE'
skill: csv-cleaner
category: cleaning
prompt: |
  Clean orders.csv as the house does and write the table to clean.csv.
workspace:
  files:
    orders.csv: |
      ID ; City ;Amount
      7 ; Lyon; 31,4
      12;Porto ; 208,05
budget: {timeout: 240, steps: 25}
checks:
  - {id: header, kind: file, path: clean.csv, matches: '\Aid,city,amount$'}
  - {id: row, kind: file, path: clean.csv, matches: '^7,Lyon,31\.40$'}
solution: solutions/trim-header.sh
CASE
cat > cases/execution/solutions/trim-header.sh <<'SOLUTION'
printf 'id,city,amount\n7,Lyon,31.40\n12,Porto,208.05\n' > clean.csv
SOLUTION
cat >> pyproject.toml <<'SETTINGS'
skilleval_trials = "4"
skilleval_output = "eval-runs"
skilleval_cap = ["provider:claude=3"]
SETTINGS
