/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package system

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/kubernetes/test/utils/localcluster"
)

// timesFaster is what all times of the rules are divided by: what takes an hour takes a minute.
const timesFaster = 60

// prometheus is one that scrapes a local cluster.
type prometheus struct{ url string }

// scraped is what a Prometheus scrapes, at an address of the cluster.
type scraped struct {
	// instance is the label of its series.
	instance, address string
	// path is that of the metrics, /metrics if it is empty.
	path string
}

// prometheusConfig scrapes twice a second. The certificate is the control plane's own.
const (
	prometheusConfig = `global: {scrape_interval: 500ms, scrape_timeout: 450ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
`
	scrapeConfig = `- job_name: %[1]q
  scheme: https
  metrics_path: %[2]s
  tls_config: {insecure_skip_verify: true}
  authorization: {credentials: %[3]q}
  static_configs: [{targets: [%[4]q], labels: {instance: %[1]q}}]
`
)

// planeTargets are the components of the control plane that have metrics about evictions.
func planeTargets(tCtx ktesting.TContext, cluster *localcluster.Cluster) []scraped {
	tCtx.Helper()
	ports, err := cluster.Ports()
	tCtx.ExpectNoError(err)
	var all []scraped
	for _, component := range []string{controlplane.ControllerManager, controlplane.APIServer} {
		all = append(all, scraped{instance: component, address: fmt.Sprintf("127.0.0.1:%d", ports[component])})
	}
	return all
}

// kubeletTargets are the kubelets of nodes. Prometheus reaches them through the API server.
func kubeletTargets(tCtx ktesting.TContext, cluster *localcluster.Cluster, nodes ...string) []scraped {
	tCtx.Helper()
	client, err := cluster.Config()
	tCtx.ExpectNoError(err)
	var all []scraped
	for _, node := range nodes {
		address := strings.TrimPrefix(client.Host, "https://")
		all = append(all, scraped{instance: node, address: address, path: "/api/v1/nodes/" + node + "/proxy/metrics"})
	}
	return all
}

// startPrometheus starts a Prometheus with the rules of deploy/monitoring, all times of which are
// divided. It ends with the test.
func startPrometheus(tCtx ktesting.TContext, p programs, cluster *localcluster.Cluster, targets []scraped) *prometheus {
	tCtx.Helper()
	dir := filepath.Join(cluster.Dir(), "prometheus")
	tCtx.ExpectNoError(os.MkdirAll(dir, 0o700))
	rules := filepath.Join(dir, "rules.yaml")
	scaleRules(tCtx, p, rules)
	client, err := cluster.Config()
	tCtx.ExpectNoError(err)
	contents := fmt.Appendf(nil, prometheusConfig, rules)
	for _, target := range targets {
		contents = fmt.Appendf(contents, scrapeConfig, target.instance, cmp.Or(target.path, "/metrics"), client.BearerToken, target.address)
	}
	config := filepath.Join(dir, "prometheus.yaml")
	tCtx.ExpectNoError(os.WriteFile(config, contents, 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	tCtx.ExpectNoError(err)
	address := listener.Addr().String()
	tCtx.ExpectNoError(listener.Close())
	log, err := os.Create(filepath.Join(cluster.Logs(), "prometheus.log"))
	tCtx.ExpectNoError(err)
	defer log.Close()
	command := exec.CommandContext(tCtx, filepath.Join(p.fork, "prometheus"), "--config.file="+config, "--web.listen-address="+address,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--log.level=warn")
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	tCtx.ExpectNoError(command.Start())
	tCtx.Cleanup(func() {
		_ = command.Process.Kill() // It may have ended.
		_ = command.Wait()
	})
	prom := &prometheus{"http://" + address}
	await(tCtx, "Prometheus", func(tCtx ktesting.TContext) {
		if up := prom.value(tCtx, "sum(up)"); up != float64(len(targets)) {
			tCtx.Fatalf("it reaches %v of %d components", up, len(targets))
		}
	})
	return prom
}

func scaleRules(tCtx ktesting.TContext, p programs, path string) {
	tCtx.Helper()
	rules, err := os.Open(filepath.Join(p.output, "..", "deploy", "monitoring", "rules.yaml"))
	tCtx.ExpectNoError(err)
	defer rules.Close()
	scaled, err := os.Create(path)
	tCtx.ExpectNoError(err)
	defer scaled.Close()
	command := exec.CommandContext(tCtx, filepath.Join(p.fork, "scale"), fmt.Sprintf("-by=%d", timesFaster))
	command.Stdin, command.Stdout, command.Stderr = rules, scaled, os.Stderr
	tCtx.ExpectNoError(command.Run(), "dividing the times of the rules")
}

// get reads an answer of the API of Prometheus.
func (p *prometheus) get(ctx context.Context, path string, parameters url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// value returns the value of a query, 0 if it has none.
func (p *prometheus) value(tCtx ktesting.TContext, query string) float64 {
	tCtx.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	tCtx.ExpectNoError(p.get(tCtx, "/api/v1/query", url.Values{"query": {query}}, &data))
	if len(data.Result) == 0 {
		return 0
	}
	var value float64
	_, err := fmt.Sscan(fmt.Sprint(data.Result[0].Value[1]), &value)
	tCtx.ExpectNoError(err)
	return value
}

// alert is one of Prometheus.
type alert struct {
	Labels, Annotations map[string]string
	State, Value        string
	ActiveAt            time.Time
}

// matches returns whether the alert has these labels.
func (a alert) matches(labels map[string]string) bool {
	for name, value := range labels {
		if a.Labels[name] != value {
			return false
		}
	}
	return true
}

// alerts returns the alerts that fire.
func (p *prometheus) alerts(ctx context.Context) ([]alert, error) {
	var data struct{ Alerts []alert }
	if err := p.get(ctx, "/api/v1/alerts", nil, &data); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(data.Alerts, func(a alert) bool { return a.State != "firing" }), nil
}

func (a alert) String() string {
	var labels []string
	for _, name := range []string{"cause", "reason", "interceptor", "name"} {
		if value := a.Labels[name]; value != "" {
			labels = append(labels, name+"="+value)
		}
	}
	return strings.TrimSpace(a.Labels["alertname"] + " " + strings.Join(labels, " "))
}

// recordedPanel is a panel of the dashboard with its series, as hack/docs draws it.
type recordedPanel struct {
	Type, Title, Unit string
	X, Y, W, H        int
	Series            []recordedSeries
}

type recordedSeries struct {
	Name   string
	Points [][2]float64
}

// recordDashboard writes what the panels of deploy/monitoring/dashboard.json show since a time, for
// the picture of it.
func (p *prometheus) recordDashboard(tCtx ktesting.TContext, programs programs, since time.Time) {
	tCtx.Helper()
	data, err := os.ReadFile(filepath.Join(programs.output, "..", "deploy", "monitoring", "dashboard.json"))
	tCtx.ExpectNoError(err)
	var dashboard struct {
		Panels []struct {
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	tCtx.ExpectNoError(json.Unmarshal(data, &dashboard))
	now := time.Now()
	recording := struct {
		Seconds float64
		Panels  []recordedPanel
	}{Seconds: now.Sub(since).Seconds()}
	for _, panel := range dashboard.Panels {
		at := panel.GridPos
		recorded := recordedPanel{Type: panel.Type, Title: panel.Title, Unit: panel.FieldConfig.Defaults.Unit, X: at.X, Y: at.Y, W: at.W, H: at.H}
		for _, target := range panel.Targets {
			recorded.Series = append(recorded.Series, p.series(tCtx, target.Expr, target.LegendFormat, since, now)...)
		}
		if panel.Type != "row" && len(recorded.Series) == 0 && !strings.Contains(panel.Targets[0].Expr, "kubelet_") {
			tCtx.Errorf("panel %q shows nothing", panel.Title)
		}
		recording.Panels = append(recording.Panels, recorded)
	}
	data, err = json.Marshal(recording)
	tCtx.ExpectNoError(err)
	tCtx.ExpectNoError(os.WriteFile(filepath.Join(programs.output, "monitoring.json"), data, 0o644))
}

// variables are those that Grafana replaces.
var variables = strings.NewReplacer("$__rate_interval", "5s", "$cluster", ".*")

// series returns the series of a query, with points each second.
func (p *prometheus) series(tCtx ktesting.TContext, query, legend string, since, until time.Time) []recordedSeries {
	tCtx.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	tCtx.ExpectNoError(p.get(tCtx, "/api/v1/query_range", url.Values{
		"query": {variables.Replace(query)}, "step": {"1"},
		"start": {fmt.Sprint(since.Unix())}, "end": {fmt.Sprint(until.Unix())},
	}, &data), query)
	var all []recordedSeries
	for _, result := range data.Result {
		s := recordedSeries{Name: legend}
		for label, value := range result.Metric {
			s.Name = strings.ReplaceAll(s.Name, "{{"+label+"}}", value)
		}
		shown := false
		for _, value := range result.Values {
			var at, number float64
			_, err := fmt.Sscan(fmt.Sprint(value[0], " ", value[1]), &at, &number)
			tCtx.ExpectNoError(err, query)
			if !math.IsNaN(number) {
				s.Points = append(s.Points, [2]float64{at - float64(since.Unix()), number})
				shown = shown || number != 0
			}
		}
		if shown {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b recordedSeries) int { return strings.Compare(a.Name, b.Name) })
	return all
}
