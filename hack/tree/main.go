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
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const usage = `usage: tree [-C dir] <command>

  tree [-copies] [-discard] [path...]
            make _output/kubernetes what the repository says; with -copies, lay
            our files as copies instead of links; with -discard, drop the edits
            of the tree that were not written back (all, or those of the paths)
  refresh   write the edits made in the tree back to the repository
  merge [-discard]
            three-way merge of patches that the base has outgrown into the tree
  verify    check that refresh has nothing to do, that each patch says why it
            is there, and that PATCHES.md is current
  index     write PATCHES.md
`

// Exit statuses.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

func main() {
	os.Exit(run(os.Args[1:], moduleCache{}, os.Stdout, os.Stderr))
}

// command is a parsed command line.
type command struct {
	root, name      string
	copies, discard bool
	paths           []string
}

// parseArgs reads the command line; what it does not know is a usage error.
func parseArgs(args []string) (*command, error) {
	c := &command{}
	global := flag.NewFlagSet("tree", flag.ContinueOnError)
	global.SetOutput(io.Discard)
	global.StringVar(&c.root, "C", "", "the repository")
	if err := global.Parse(args); err != nil {
		return nil, err
	}
	if global.NArg() == 0 {
		return nil, errors.New("no command given")
	}
	c.name = global.Arg(0)
	local := flag.NewFlagSet(c.name, flag.ContinueOnError)
	local.SetOutput(io.Discard)
	switch c.name {
	case "tree":
		local.BoolVar(&c.copies, "copies", false, "lay copies")
		local.BoolVar(&c.discard, "discard", false, "drop edits")
	case "merge":
		local.BoolVar(&c.discard, "discard", false, "drop edits")
	case "refresh", "verify", "index":
	default:
		return nil, fmt.Errorf("unknown command %q", c.name)
	}
	if err := local.Parse(global.Args()[1:]); err != nil {
		return nil, err
	}
	c.paths = local.Args()
	if len(c.paths) > 0 && !(c.name == "tree" && c.discard) {
		return nil, fmt.Errorf("unexpected argument %q", c.paths[0])
	}
	return c, nil
}

// run is main without the process: tests call it with a made-up base.
func run(args []string, src baseSource, stdout, stderr io.Writer) int {
	c, err := parseArgs(args)
	if err != nil {
		fmt.Fprintf(stderr, "tree: %v\n%s", err, usage)
		return exitUsage
	}
	if err := c.execute(src, stdout); err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			fmt.Fprintf(stderr, "%s: %s\n", c.name, line)
		}
		return exitFailed
	}
	return exitOK
}

func (c *command) execute(src baseSource, out io.Writer) error {
	start := time.Now()
	root, err := findRoot(c.root)
	if err != nil {
		return err
	}
	w, err := openWorkspace(root, src, out)
	if err != nil {
		return err
	}
	w.copies, w.discard = c.copies, c.discard
	w.discardPaths = map[string]bool{}
	for _, p := range c.paths {
		w.discardPaths[filepath.ToSlash(filepath.Clean(p))] = true
	}
	release, err := w.lock()
	if err != nil {
		return err
	}
	defer release()
	summary, err := c.dispatch(w)
	if err == nil {
		fmt.Fprintf(out, "%s: %s (%.1f s)\n", c.name, summary, time.Since(start).Seconds())
	}
	return err
}

// dispatch runs the command and returns its summary.
func (c *command) dispatch(w *workspace) (string, error) {
	switch c.name {
	case "tree":
		plan, err := w.materialise()
		if err != nil {
			return "", err
		}
		return w.summary(plan.lines(), plan.created), nil
	case "refresh":
		plan, err := w.refresh()
		if err != nil {
			return "", err
		}
		return w.summary(plan.lines(), false), nil
	case "merge":
		return w.runMerge()
	case "verify":
		return "the repository is complete", w.verify()
	}
	changed, err := w.writeIndex()
	if changed {
		return "wrote " + indexFile, err
	}
	return indexFile + " is current", err
}

// maxLines keeps the output of a run that changes much readable.
const maxLines = 40

func (w *workspace) printLines(lines []string) {
	for i, line := range lines {
		if i == maxLines {
			fmt.Fprintf(w.out, "... and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintln(w.out, line)
	}
}

// summary prints what changed, unless that is everything, and counts what there is.
func (w *workspace) summary(lines []string, created bool) string {
	if !created {
		w.printLines(lines)
	}
	patches, generated := 0, 0
	for _, p := range w.set.patches {
		if p.generated() {
			generated++
		} else {
			patches++
		}
	}
	change := fmt.Sprintf("%d changed", len(lines))
	if created {
		change = "made anew"
	}
	return fmt.Sprintf("%s: %d files of the base, %d patches, %d generated edits, %d files of ours; %s",
		baseVersion(w.pins), len(w.base), patches, generated, len(w.ours), change)
}

func (w *workspace) runMerge() (string, error) {
	plan, err := w.merge()
	if err != nil {
		return "", err
	}
	for _, p := range plan.merged {
		fmt.Fprintln(w.out, "merged", p)
	}
	if len(plan.conflicts) > 0 {
		return "", fmt.Errorf("conflict markers are left in these files of the tree: resolve them, then run make refresh\n%s", strings.Join(plan.conflicts, "\n"))
	}
	if len(plan.merged) == 0 {
		return "nothing to merge", nil
	}
	return fmt.Sprintf("%d files merged without conflict; look at them in the tree, then run make refresh", len(plan.merged)), nil
}

// findRoot goes up from the current directory to the go.mod that pins the base.
func findRoot(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(data, []byte(mainModule+" v")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod here or above requires %s: run from the repository, or use -C", mainModule)
		}
		dir = parent
	}
}
