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

// Command docs makes parts of the documents from what the code and its tests write. hack/docs.sh and
// hack/pictures.sh run it.
//
//	docs metrics FILE <metrics.yaml   writes the tables of metrics into the document
//	docs watch <screen >watch.svg     draws a terminal
//	docs downtime <surge.json >downtime.svg
//	                                  draws what make test-surge has recorded
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	input, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	switch {
	case len(args) == 2 && args[0] == "metrics":
		return updateMetrics(args[1], input)
	case len(args) == 1 && args[0] == "watch":
		return drawTerminal(out, string(input))
	case len(args) == 1 && args[0] == "downtime":
		return drawDowntime(out, input)
	case len(args) == 1 && args[0] == "dashboard":
		return drawDashboard(out, input)
	default:
		return errors.New("usage: docs metrics FILE | watch | downtime | dashboard, with the input on standard input")
	}
}
