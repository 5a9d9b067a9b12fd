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

// Scale writes Prometheus rules with all times divided, so that a test of alerts that wait for hours
// takes minutes:
//
//	scale -by 60 <deploy/monitoring/rules.yaml >rules.yaml
//
// Divided are the intervals of groups, "for", ranges and offsets, and the numbers that metrics of
// seconds are compared with.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

func main() {
	by := flag.Int("by", 60, "what times are divided by")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *by); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, by int) error {
	if by < 1 {
		return fmt.Errorf("-by %d is less than 1", by)
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	promql := parser.NewParser(parser.Options{})
	rules, errs := rulefmt.Parse(content, false, model.UTF8Validation, promql, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return fmt.Errorf("the rules are not valid: %w", errs[0])
	}
	for i := range rules.Groups {
		group := &rules.Groups[i]
		group.Interval = scaleDuration(group.Interval, by)
		for j := range group.Rules {
			rule := &group.Rules[j]
			rule.For, rule.KeepFiringFor = scaleDuration(rule.For, by), scaleDuration(rule.KeepFiringFor, by)
			if rule.Expr, err = scaleExpression(promql, rule.Expr, by); err != nil {
				return fmt.Errorf("rule %s%s: %w", rule.Record, rule.Alert, err)
			}
		}
	}
	var scaled bytes.Buffer
	if err := yaml.NewEncoder(&scaled).Encode(rules); err != nil {
		return err
	}
	_, err = out.Write(scaled.Bytes())
	return err
}

func scaleDuration(d model.Duration, by int) model.Duration {
	return model.Duration(scale(time.Duration(d), by))
}

// scale divides a time. Prometheus knows milliseconds.
func scale(d time.Duration, by int) time.Duration {
	return (d / time.Duration(by)).Round(time.Millisecond)
}

func scaleExpression(promql parser.Parser, text string, by int) (string, error) {
	expression, err := promql.ParseExpr(text)
	if err != nil {
		return "", err
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			n.Range = scale(n.Range, by)
		case *parser.SubqueryExpr:
			n.Range, n.Step, n.OriginalOffset = scale(n.Range, by), scale(n.Step, by), scale(n.OriginalOffset, by)
		case *parser.VectorSelector:
			n.OriginalOffset = scale(n.OriginalOffset, by)
		case *parser.BinaryExpr:
			if limit, ok := n.RHS.(*parser.NumberLiteral); ok && n.Op.IsComparisonOperator() && isSeconds(n.LHS) {
				limit.Val /= float64(by)
			}
		}
		return nil
	})
	return expression.String(), nil
}

// isSeconds returns whether an expression is a time: metrics say so in their names.
func isSeconds(expression parser.Expr) bool {
	found := false
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			name := selector.Name
			found = found || strings.Contains(name, "_seconds") && !strings.HasSuffix(name, "_count")
		}
		return nil
	})
	return found
}
