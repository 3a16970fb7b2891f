cat cases/execution/rename-columns.yaml
ls cases/execution/fixtures
sed -i -e 's/^promt:/prompt:/' -e 's|\.\./\.\./shared/ledger|fixtures/ledger|' -e '/two minutes/d' -e 's/kind: jsn/kind: json/' \
  -e "s/matches: '^(2026/matches: '^2026/" cases/execution/rename-columns.yaml
