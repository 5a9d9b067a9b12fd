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
	"math"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"one":                   {[]float64{3}, 3},
		"odd, unsorted":         {[]float64{9, 1, 5}, 5},
		"even":                  {[]float64{1, 2, 4, 100}, 3},
		"an outlier is ignored": {[]float64{5, 5, 5, 5, 5000}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.values)
			if got := median(tc.values); got != tc.want {
				t.Errorf("median(%v) = %v, want %v", tc.values, got, tc.want)
			}
			if !slices.Equal(before, tc.values) {
				t.Errorf("the values were changed to %v", tc.values)
			}
		})
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v, want NaN", got)
	}
}

func TestPercentile(t *testing.T) {
	var hundred []float64
	for i := 100; i > 0; i-- {
		hundred = append(hundred, float64(i))
	}
	for name, tc := range map[string]struct {
		p      float64
		values []float64
		want   float64
	}{
		"p99 of 100":             {99, hundred, 99},
		"p50 of 100":             {50, hundred, 50},
		"p100 is the largest":    {100, hundred, 100},
		"p0 is the smallest":     {0, hundred, 1},
		"p99 of 10 is the worst": {99, hundred[:10], 100},
		"p50 of 3":               {50, []float64{3, 1, 2}, 2},
		"one value":              {99, []float64{7}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentile(tc.p, tc.values); got != tc.want {
				t.Errorf("percentile(%v) = %v, want %v", tc.p, got, tc.want)
			}
		})
	}
	if got := percentile(99, nil); !math.IsNaN(got) {
		t.Errorf("percentile of nothing = %v, want NaN", got)
	}
}
