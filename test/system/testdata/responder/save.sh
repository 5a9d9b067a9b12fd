#!/usr/bin/env bash
# A responder of lifecycle.k8s.io with kubectl alone, in the namespace of its kubeconfig. Before one of its pods is
# evicted, it copies their data, which is an annotation here, to a ConfigMap.
set -o errexit -o nounset -o pipefail
trap exit INT TERM
readonly NAME=backup.example.com/save

# The Evictions in which this responder is Active and has not completed, each with its pod.
# shellcheck disable=SC2016 # The variables are those of the template.
readonly WAITING='{{range $eviction := .items}}{{with .status}}{{$reports := .responders}}
  {{range .targetResponders}}{{if and (eq .name "'$NAME'") (eq .state "Active")}}
    {{range $reports}}{{if and (eq .name "'$NAME'") (not .completionTime)}}{{$eviction.metadata.name}} {{$eviction.spec.target.pod.name}}{{end}}{{end}}
  {{end}}{{end}}
{{end}}{{end}}'

now() { date -u "$@" +%Y-%m-%dT%H:%M:%SZ; }

# report EVICTION FIELDS: without a heartbeat for 20 minutes, the eviction goes on without this responder.
report() {
  kubectl patch eviction "$1" --subresource=status --patch \
    '{"status":{"responders":[{"name":"'$NAME'","heartbeatTime":"'"$(now)"'",'"$2"'}]}}'
}

while sleep 1; do
  kubectl get evictions --selector="$NAME=responder" --output=go-template="$WAITING" | while read -r eviction pod; do
    [[ -n $eviction ]] || continue
    report "$eviction" '"message":"copying the data","expectedCompletionTime":"'"$(now -d '+20 seconds')"'"'
    data=$(kubectl get pod "$pod" --output=jsonpath='{.metadata.annotations.data}')
    sleep 15 # There is more of it in reality.
    kubectl create configmap "saved-$pod" --from-literal=data="$data" --dry-run=client --output=yaml | kubectl apply --filename=-
    report "$eviction" '"message":"saved","completionTime":"'"$(now)"'"'
  done
done
