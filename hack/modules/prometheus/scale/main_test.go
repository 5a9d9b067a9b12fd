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

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"
)

func TestRun(t *testing.T) {
	for name, test := range map[string]struct{ rule, want string }{
		"a time that a metric is compared with": {
			rule: `{alert: A, expr: max(age_seconds) > 3600, for: 5m, keep_firing_for: 2m}`,
			want: `{"alert": "A", "expr": "max(age_seconds) > 60", "for": "5s", "keep_firing_for": "2s"}`,
		},
		"a number of events": {
			rule: `{alert: A, expr: 'sum(increase(took_seconds_count[30m])) > 2'}`,
			want: `{"alert": "A", "expr": "sum(increase(took_seconds_count[30s])) > 2"}`,
		},
		"offsets and subqueries": {
			rule: `{record: 'a:b', expr: 'max_over_time(a[1h:10m] offset 2h) - a offset 1h'}`,
			want: `{"record": "a:b", "expr": "max_over_time(a[1m:10s] offset 2m) - a offset 1m"}`,
		},
		"each side of an or": {
			rule: `{alert: A, expr: a_seconds > 30 or b_seconds > 300 or c > 60}`,
			want: `{"alert": "A", "expr": "a_seconds > 0.5 or b_seconds > 5 or c > 60"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(strings.NewReader("groups: [{name: g, interval: 30s, rules: ["+test.rule+"]}]"), &out, 60); err != nil {
				t.Fatal(err)
			}
			got, want := parse(t, out.String()), parse(t, `{"groups": [{"name": "g", "interval": "500ms", "rules": [`+test.want+`]}]}`)
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// parse returns YAML in one form.
func parse(t *testing.T, text string) string {
	t.Helper()
	var rules rulefmt.RuleGroups
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRunRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		rules, want string
		by          int
	}{
		"a factor below 1": {rules: "groups: []", by: 0, want: "-by 0 is less than 1"},
		"no rules":         {rules: "groups: [{name: g, rules: [{alert: A, expr: 'sum('}]}]", by: 60, want: "the rules are not valid"},
		"an unknown field": {rules: "groups: [{name: g, rules: [{alert: A, expr: a, four: 1m}]}]", by: 60, want: "field four not found"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(strings.NewReader(test.rules), &out, test.by)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if out.Len() > 0 {
				t.Errorf("it wrote %s", out.String())
			}
		})
	}
}
