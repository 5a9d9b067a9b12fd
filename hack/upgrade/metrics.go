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
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// attemptsMetric counts what the built-in interceptor tried.
const attemptsMetric = "evictionrequest_controller_imperative_evictions_total"

// evictionAttempts adds up what the controller manager has counted. A metric with
// labels appears with its first count.
func (t *upgradeTest) evictionAttempts(ctx context.Context) (float64, error) {
	text, err := t.plane.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if name, _, _ := strings.Cut(series, "{"); name != attemptsMetric {
			continue
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("reading metric %s: %w", series, err)
		}
		sum += count
	}
	return sum, nil
}
