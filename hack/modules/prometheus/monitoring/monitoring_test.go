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

package monitoring

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// root is the repository.
const root = "../../../.."

var promql = parser.NewParser(parser.Options{})

// upstream are metrics that are not the project's, with their labels.
var upstream = map[string][]string{
	"workqueue_queue_duration_seconds_sum":        {"name"},
	"workqueue_queue_duration_seconds_count":      {"name"},
	"workqueue_longest_running_processor_seconds": {"name"},
	"workqueue_depth":                             {"name"},
	"kubernetes_feature_enabled":                  {"name"},
	"ALERTS":                                      {"alertname", "alertstate"},
}

// everywhere are labels that Prometheus, or who scrapes, adds to each metric.
var everywhere = []string{"instance", "job", "cluster", "le"}

// reference returns the metrics of docs/reference/metrics.md with their labels, and the values of
// labels that it lists.
func reference(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	for name, labels := range upstream {
		known[name] = labels
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (gauge|counter|histogram) \\| ([^|]*) \\|")
	for _, match := range row.FindAllStringSubmatch(read(t, "docs/reference/metrics.md"), -1) {
		var names []string
		for _, label := range strings.FieldsFunc(match[3], func(r rune) bool { return strings.ContainsRune("`, ", r) }) {
			names = append(names, label)
		}
		if match[2] != "histogram" {
			known[match[1]] = names
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known[match[1]+suffix] = names
		}
	}
	if len(known) < 30 {
		t.Fatalf("the reference has %d metrics", len(known))
	}
	return known
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func readRules(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	rules, errs := rulefmt.Parse([]byte(read(t, "deploy/monitoring/rules.yaml")), false, model.UTF8Validation, promql, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	return rules
}

// checkExpression checks the metrics and labels of an expression.
func checkExpression(known map[string][]string, text string) error {
	expression, err := promql.ParseExpr(text)
	if err != nil {
		return err
	}
	var wrong error
	var available []string
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		own, found := known[selector.Name]
		if !found {
			wrong = fmt.Errorf("%s: there is no metric %q", text, selector.Name)
		}
		available = slices.Concat(available, own, everywhere)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != labels.MetricName && !slices.Contains(slices.Concat(own, everywhere), matcher.Name) {
				wrong = fmt.Errorf("%s: metric %s has no label %q", text, selector.Name, matcher.Name)
			}
		}
		return nil
	})
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range aggregate.Grouping {
				if !slices.Contains(available, label) {
					wrong = fmt.Errorf("%s: no metric has the label %q", text, label)
				}
			}
		}
		return nil
	})
	return wrong
}

// knownWithRecorded adds what rules record.
func knownWithRecorded(t *testing.T) map[string][]string {
	t.Helper()
	known := reference(t)
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if rule.Record != "" {
				expression, err := promql.ParseExpr(rule.Expr)
				if err != nil {
					t.Fatal(err)
				}
				parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
					if aggregate, ok := node.(*parser.AggregateExpr); ok {
						known[rule.Record] = append(known[rule.Record], aggregate.Grouping...)
					}
					return nil
				})
			}
		}
	}
	return known
}

var (
	alertLabels = regexp.MustCompile(`\$labels\.([a-z_]+)`)
	severities  = []string{"page", "ticket"}
)

func TestRules(t *testing.T) {
	known := knownWithRecorded(t)
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			t.Run(rule.Alert+rule.Record, func(t *testing.T) {
				if err := checkExpression(known, rule.Expr); err != nil {
					t.Error(err)
				}
				if rule.Alert == "" {
					return
				}
				if !slices.Contains(severities, rule.Labels["severity"]) {
					t.Errorf("severity %q", rule.Labels["severity"])
				}
				for _, annotation := range []string{"summary", "description", "runbook_url"} {
					if rule.Annotations[annotation] == "" {
						t.Errorf("no annotation %s", annotation)
					}
				}
			})
		}
	}
}

// TestRuleUnits runs the unit tests of the rules.
func TestRuleUnits(t *testing.T) {
	promtool, err := filepath.Abs(filepath.Join(root, "_output/bin/promtool"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		command := exec.Command(promtool, args...)
		command.Dir = filepath.Join(root, "deploy/monitoring")
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s\nmake _output/bin/promtool builds promtool", strings.Join(args, " "), err, output)
		}
	}
	tests := read(t, "deploy/monitoring/rules_test.yaml")
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" && !strings.Contains(tests, "alertname: "+rule.Alert+"\n") {
				t.Errorf("no test expects that %s fires", rule.Alert)
			}
		}
	}
}

// TestPrometheusRule makes sure that the operator of Prometheus gets the same rules.
func TestPrometheusRule(t *testing.T) {
	var rules any
	if err := yaml.Unmarshal([]byte(read(t, "deploy/monitoring/rules.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	var object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       any
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/monitoring/prometheusrule.yaml")), &object); err != nil {
		t.Fatal(err)
	}
	if object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" || !reflect.DeepEqual(object.Spec, rules) {
		t.Error(`deploy/monitoring/prometheusrule.yaml is not of rules.yaml: "make deploy/monitoring/prometheusrule.yaml" writes it`)
	}
}

// dashboard has what the test reads of one.
type dashboard struct {
	Panels []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ Expr, LegendFormat string }
		Datasource               struct{ UID string }
	}
	Annotations struct{ List []struct{ Expr string } }
	Templating  struct{ List []struct{ Name string } }
}

// intervals are variables that Grafana replaces by a range.
var intervals = strings.NewReplacer("$__rate_interval", "5m", "$__interval", "1m")

func TestDashboard(t *testing.T) {
	known := knownWithRecorded(t)
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "deploy/monitoring/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	ids, expressions := map[int]bool{}, 0
	for i, panel := range d.Panels {
		if ids[panel.ID] {
			t.Errorf("two panels have the id %d", panel.ID)
		}
		ids[panel.ID] = true
		if panel.Type == "row" {
			continue
		}
		if panel.Description == "" || panel.Datasource.UID != "${datasource}" || len(panel.Targets) == 0 {
			t.Errorf("panel %q has no description, no query, or a data source of its own: %+v", panel.Title, panel)
		}
		for _, target := range panel.Targets {
			expressions++
			if err := checkExpression(known, intervals.Replace(target.Expr)); err != nil {
				t.Errorf("panel %q: %v", panel.Title, err)
			}
		}
		for _, other := range d.Panels[i+1:] {
			a, b := panel.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panels %q and %q overlap", panel.Title, other.Title)
			}
		}
	}
	for _, annotation := range d.Annotations.List {
		if err := checkExpression(known, annotation.Expr); err != nil {
			t.Error(err)
		}
	}
	if expressions < 20 {
		t.Errorf("%d queries", expressions)
	}
}

// causes returns the causes of blockers that need an intervention, from the metric's values.
func causes(t *testing.T) []string {
	t.Helper()
	_, section, found := strings.Cut(read(t, "docs/reference/metrics.md"), "### Causes\n")
	if !found {
		t.Fatal("the reference has no causes")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return regexp.MustCompile("`[A-Z][A-Za-z]+`").FindAllString(section, -1)
}

// sections are those of each runbook.
var sections = []string{"\n## Meaning\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## Way out\n"}

func TestRunbooks(t *testing.T) {
	known := knownWithRecorded(t)
	wanted := map[string]bool{"README.md": true}
	for _, cause := range causes(t) {
		wanted[strings.Trim(cause, "`")+".md"] = true
	}
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if page, ok := strings.CutPrefix(rule.Annotations["runbook_url"], "docs/runbooks/"); rule.Alert != "" && !alertLabels.MatchString(page) {
				wanted[page] = true
				if !ok {
					t.Errorf("the runbook of %s is %q", rule.Alert, rule.Annotations["runbook_url"])
				}
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "docs/runbooks"))
	if err != nil {
		t.Fatal(err)
	}
	index := read(t, "docs/runbooks/README.md")
	for _, entry := range entries {
		name := entry.Name()
		if !wanted[name] {
			t.Errorf("docs/runbooks/%s is of no alert and no cause", name)
		}
		delete(wanted, name)
		if name == "README.md" {
			continue
		}
		if !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/runbooks/README.md has no link to %s", name)
		}
		text := read(t, "docs/runbooks/"+name)
		at := 0
		for _, section := range sections {
			i := strings.Index(text, section)
			if i < at {
				t.Errorf("docs/runbooks/%s has no section%sin its place", name, section)
			}
			at = max(at, i)
		}
		if !strings.Contains(text, "```console\n$ ") {
			t.Errorf("docs/runbooks/%s shows no command", name)
		}
		for _, metric := range regexp.MustCompile("`((?:nodemaintenance|evictionrequest|deployment|statefulset|daemonset)_controller_[a-z_]+|kubelet_[a-z_]+|workqueue_[a-z_]+)").FindAllStringSubmatch(text, -1) {
			if _, found := known[metric[1]]; !found {
				t.Errorf("docs/runbooks/%s: there is no metric %s", name, metric[1])
			}
		}
	}
	for name := range wanted {
		t.Errorf("docs/runbooks/%s is missing", name)
	}
}

// TestCheckExpression makes sure that the tests above find what they look for.
func TestCheckExpression(t *testing.T) {
	known := reference(t)
	for expression, want := range map[string]string{
		`sum(nodemaintenance_controller_node)`:             `no metric "nodemaintenance_controller_node"`,
		`nodemaintenance_controller_nodes{stages="Drain"}`: `has no label "stages"`,
		`sum by (node) (nodemaintenance_controller_nodes)`: `no metric has the label "node"`,
		`sum(`: "unclosed",
		`evictionrequest_controller_interceptor_duration_seconds`:                 "no metric",
		`sum by (stage) (nodemaintenance_controller_nodes{cluster=~"a",job="b"})`: "",
	} {
		err := checkExpression(known, expression)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}

// commands returns the block of commands of the README that begins with a text.
func commands(t *testing.T, begin string) string {
	t.Helper()
	_, block, found := strings.Cut(read(t, "deploy/monitoring/README.md"), "\n```sh\n"+begin)
	if !found {
		t.Fatalf("deploy/monitoring/README.md has no commands that begin with %q", begin)
	}
	block, _, _ = strings.Cut(block, "\n```\n")
	return begin + block
}

// TestLinkedRunbooks runs the commands of the README that make links of runbook_url: the copies must
// pass the unit tests, and be equal to each other.
func TestLinkedRunbooks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rules.yaml", "rules_test.yaml", "prometheusrule.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, "deploy/monitoring/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool, err := filepath.Abs(filepath.Join(root, "_output/bin/promtool"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("bash", "-euc", commands(t, "mkdir linked\n")+"\ncd linked\n"+promtool+" test rules rules_test.yaml")
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, name := range []string{"rules.yaml", "prometheusrule.yaml"} {
		linked, err := os.ReadFile(filepath.Join(dir, "linked", name))
		if err != nil {
			t.Fatal(err)
		}
		alerts, links := strings.Count(string(linked), "- alert: "), regexp.MustCompile(`runbook_url: "?https://example\.com/docs/runbooks/`).FindAll(linked, -1)
		if alerts == 0 || len(links) != alerts {
			t.Errorf("%s has %d links for %d alerts", name, len(links), alerts)
		}
	}
}

// TestMinimalPrometheus makes sure that the Prometheus of minimal.yaml finds its configuration, has
// the rights that the configuration needs, and is the version with which the rules are tested.
func TestMinimalPrometheus(t *testing.T) {
	var deployment struct {
		Metadata struct{ Namespace string }
		Spec     struct {
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			Template struct {
				Metadata struct{ Labels map[string]string }
				Spec     struct {
					ServiceAccountName string `yaml:"serviceAccountName"`
					Containers         []struct {
						Image        string
						Args         []string
						VolumeMounts []struct {
							Name      string
							MountPath string `yaml:"mountPath"`
						} `yaml:"volumeMounts"`
					}
					Volumes []struct {
						Name      string
						ConfigMap struct{ Name string } `yaml:"configMap"`
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/monitoring/minimal.yaml")), &deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if !reflect.DeepEqual(deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Metadata.Labels) {
		t.Error("the selector does not match the pod")
	}
	subject := fmt.Sprintf("subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]", pod.ServiceAccountName, deployment.Metadata.Namespace)
	if !strings.Contains(read(t, "deploy/monitoring/rbac.yaml"), subject) {
		t.Errorf("rbac.yaml has not %q", subject)
	}
	version := regexp.MustCompile(`prometheus/prometheus v0\.(\d)(\d\d)\.(\d+)`).FindStringSubmatch(read(t, "hack/modules/prometheus/go.mod"))
	if want := fmt.Sprintf(":v%s.%s.%s", version[1], strings.TrimPrefix(version[2], "0"), version[3]); !strings.HasSuffix(pod.Containers[0].Image, want) {
		t.Errorf("the image is %s, and go.mod has %s", pod.Containers[0].Image, want)
	}
	create := fmt.Sprintf("kubectl create configmap %s -n %s --from-file=prometheus.yaml", pod.Volumes[0].ConfigMap.Name, deployment.Metadata.Namespace)
	var config struct {
		RuleFiles []string `yaml:"rule_files"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/monitoring/prometheus.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	for _, file := range config.RuleFiles {
		create += " --from-file=" + file
	}
	if block := commands(t, "kubectl create namespace"); !strings.Contains(block, create+"\n") {
		t.Errorf("the README does not say %q:\n%s", create, block)
	}
	mount := pod.Containers[0].VolumeMounts[0]
	if mount.Name != pod.Volumes[0].Name || !slices.Contains(pod.Containers[0].Args, "--config.file="+mount.MountPath+"/prometheus.yaml") {
		t.Errorf("the configuration is mounted at %+v, and the arguments are %q", mount, pod.Containers[0].Args)
	}
}
