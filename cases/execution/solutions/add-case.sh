cat cases/execution/*.yaml cases/execution/solutions/*.sh factors.txt
sed -e '/^prompt:/,/^  /c\
prompt: |\
  A marathon is 26.2 miles long. Write its length in kilometres into result.json, in the house form.' \
  -e 's/equals: 36.119/equals: 42.165/' -e 's/equals: m}/equals: km}/' -e 's/feet-to-metres/miles-to-km/' \
  cases/execution/feet-to-metres.yaml > cases/execution/miles-to-km.yaml
printf '%s\n' "printf '{\"value\": 42.165, \"unit\": \"km\"}\n' > result.json" > cases/execution/solutions/miles-to-km.sh
