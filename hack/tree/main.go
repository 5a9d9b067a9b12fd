/*
Copyright The Kubernetes Authors.

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
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const usage = `usage: tree <command> [-C dir], in the repository or with its directory

  tree [-copies] [-discard]
            make _output/kubernetes what the repository says; with -copies, put
            copies of our files there instead of links; with -discard, drop the
            edits of the tree that were not refreshed
  refresh   write the edits made in the tree back to the repository
  merge     three-way merge of patches that the base has outgrown, and of edits
            whose patch has changed, into the tree
  verify    check that refresh has nothing to do, that each patch says why it
            is there, and that PATCHES.md is current
  index     write PATCHES.md
  pin -to VERSION
            write go.mod, go.sum and go.work for another version of Kubernetes, and
            say which of its modules cannot be had; hack/rebase.sh does the rest
`

func main() {
	os.Exit(run(os.Args[1:], moduleCache{}, os.Stdout, os.Stderr))
}

// commands return a summary of what they did.
var commands = map[string]func(*workspace) (string, error){
	"tree":    (*workspace).runTree,
	"refresh": (*workspace).runRefresh,
	"merge":   (*workspace).runMerge,
	"verify":  (*workspace).runVerify,
	"index":   (*workspace).runIndex,
	"pin":     (*workspace).runPin,
}

// parseArgs returns a workspace with the options of the command line.
func parseArgs(args []string) (*workspace, error) {
	if len(args) == 0 || commands[args[0]] == nil {
		return nil, errors.New("the first argument has to be a command")
	}
	w := &workspace{}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&w.root, "C", ".", "the repository")
	if args[0] == "tree" {
		flags.BoolVar(&w.copies, "copies", false, "copies instead of links")
		flags.BoolVar(&w.discard, "discard", false, "drop edits")
	}
	if args[0] == "pin" {
		flags.StringVar(&w.to, "to", "", "the version")
	}
	err := flags.Parse(args[1:])
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return w, err
}

// run is main without the process: tests call it with a made-up base. The exit
// status is 2 for wrong usage, 1 for all other errors.
func run(args []string, src baseSource, stdout, stderr io.Writer) int {
	start := time.Now()
	w, err := parseArgs(args)
	if err != nil {
		fmt.Fprintf(stderr, "tree: %v\n%s", err, usage)
		return 2
	}
	w.src, w.out = src, stdout
	summary, err := w.execute(commands[args[0]])
	if err == nil {
		fmt.Fprintf(stdout, "%s: %s (%.1f s)\n", args[0], summary, time.Since(start).Seconds())
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(stderr, "%s: %s\n", args[0], line)
	}
	return 1
}

func (w *workspace) execute(command func(*workspace) (string, error)) (string, error) {
	if err := w.open(); err != nil {
		return "", err
	}
	// The lock is beside the tree, not in it: the tree may not be there yet.
	release, err := lock(filepath.Join(filepath.Dir(w.dir), ".tree.lock"), w.out)
	if err != nil {
		return "", err
	}
	defer release()
	return command(w)
}

// runTree makes the tree what the repository says.
func (w *workspace) runTree() (string, error) {
	err := w.load()
	created := errors.Is(err, errNoTree)
	if created {
		err = w.create()
	}
	if err != nil {
		return "", err
	}
	base, err := w.wantedBase()
	if err != nil {
		return "", err
	}
	plan, err := w.sync(base)
	if err != nil {
		return "", err
	}
	if created {
		return w.summary() + "created", nil
	}
	return w.summary() + w.printLines(plan.lines), nil
}

// printLines prints what changed, unless that is too much to read, and counts it.
func (w *workspace) printLines(lines []string) string {
	slices.Sort(lines)
	for i, line := range lines {
		if i == 40 {
			fmt.Fprintf(w.out, "... and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintln(w.out, line)
	}
	return fmt.Sprintf("%d changed", len(lines))
}

// summary counts what the tree is made of.
func (w *workspace) summary() string {
	patches := 0
	for _, p := range w.set.patches {
		if !p.generated() {
			patches++
		}
	}
	return fmt.Sprintf("%s: %d files of the base, %d patches, %d generated edits, %d files of ours; ",
		baseVersion(w.pins), len(w.base), patches, len(w.set.patches)-patches, len(w.ours))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
