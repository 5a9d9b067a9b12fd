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
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/localcluster"
)

// TestTutorial runs the commands of docs/tutorial.md in one shell, in the order of the document.
// All must succeed, and print what the document shows below them, if it shows anything.
func TestTutorial(t *testing.T) { testTutorial(ktesting.Init(t)) }
func testTutorial(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	root := filepath.Dir(p.output)
	text, err := os.ReadFile(filepath.Join(root, "docs", "tutorial.md"))
	tCtx.ExpectNoError(err)
	commands, err := readCommands(string(text))
	tCtx.ExpectNoError(err)

	// A repository with only the built programs, so that its clusters are its own.
	dir := tCtx.TempDir()
	tCtx.ExpectNoError(os.Mkdir(filepath.Join(dir, "_output"), 0o700))
	tCtx.ExpectNoError(os.Symlink(p.fork, filepath.Join(dir, "_output", "bin")))
	tCtx.ExpectNoError(os.Symlink(filepath.Join(root, "Makefile"), filepath.Join(dir, "Makefile")))
	tCtx.CleanupCtx(func(tCtx ktesting.TContext) {
		// The document ends with this, unless a command has failed.
		c := localcluster.Cluster{Name: "try", Output: filepath.Join(dir, "_output")}
		tCtx.AssertNoError(c.Down(tCtx), "stopping the cluster")
	})
	shell := startShell(tCtx, dir)
	// The programs are built before the test.
	shell.run(tCtx, `make() { command make -o control-plane -o local-cluster-tools "$@"; }`)
	for _, command := range commands {
		tCtx.Logf("line %d: $ %s", command.line, command.text)
		command.run(tCtx.WithStep(fmt.Sprintf("tutorial.md:%d", command.line)), shell)
	}
}

// command is a command in a document.
type command struct {
	line int
	text string
	// shown is what the document shows below the command. An empty text is not compared.
	shown string
}

// heredoc matches the beginning of a here-document, which ends with a line of that word.
var heredoc = regexp.MustCompile(`<<'?(\w+)'?$`)

// readCommands returns the commands of the console blocks. Other blocks are errors: nothing would
// verify their content.
func readCommands(text string) ([]command, error) {
	var commands []command
	inside, end := false, ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case !inside:
			inside = line == "```console"
			if !inside && strings.HasPrefix(line, "```") {
				return nil, fmt.Errorf("line %d: %q begins a block that is not run, want ```console", i+1, line)
			}
		case line == "```":
			inside = false
		case end != "" || strings.HasPrefix(line, "$ "):
			if end == "" {
				commands = append(commands, command{line: i + 1, text: line[2:]})
			} else {
				commands[len(commands)-1].text += "\n" + line
			}
			if begin := heredoc.FindStringSubmatch(line); begin != nil {
				end = begin[1]
			} else if line == end {
				end = ""
			}
		case len(commands) == 0:
			return nil, fmt.Errorf("line %d: %q is not the output of a command", i+1, line)
		default:
			commands[len(commands)-1].shown += line + "\n"
		}
	}
	return commands, nil
}

// reads matches the commands that are repeated until they print what the document shows: a reader
// types slower than the test.
var reads = regexp.MustCompile(`^(cat|kubectl get|kubectl maintenance (plan|status))\b`)

func (c command) run(tCtx ktesting.TContext, shell *shell) {
	tCtx.Helper()
	check := func(tCtx ktesting.TContext) {
		printed, status := shell.run(tCtx, c.text)
		if status != "0" {
			tCtx.Fatalf("exit status %s, must be 0:\n%s", status, printed)
		}
		if diff := compareOutput(c.shown, printed); diff != "" {
			tCtx.Fatalf("the output is not what the document shows (- document, + output):\n%s", diff)
		}
	}
	if reads.MatchString(c.text) {
		awaitWithin(tCtx, time.Minute, "the output", check)
	} else {
		check(tCtx)
	}
}

// volatile are the texts that differ from run to run.
var volatile = []struct {
	pattern     *regexp.Regexp
	placeholder string
}{
	// kubectl wait ends its watch when the condition is met, and client-go logs it if an event is being read then.
	{regexp.MustCompile(`(?m)^I\d{4} .* reflector\.go:\d+\] "Warning: watch ended with error".*\n`), ""},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b(\d+[hms])+\b`), "DURATION"},
	{regexp.MustCompile(` +`), " "}, // Columns are as wide as their cells.
}

// deploymentPod matches the random part of the name of a pod of a Deployment.
var deploymentPod = regexp.MustCompile(`-[a-z0-9]{8,10}-[a-z0-9]{5}\b`)

// normalize replaces texts that differ from run to run. Different pods stay different: they are
// numbered in the order in which they appear.
func normalize(text string) string {
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.placeholder)
	}
	numbers := map[string]int{}
	return deploymentPod.ReplaceAllStringFunc(text, func(suffix string) string {
		if _, found := numbers[suffix]; !found {
			numbers[suffix] = len(numbers) + 1
		}
		return fmt.Sprintf("-RANDOM%d", numbers[suffix])
	})
}

// compareOutput returns an empty text if a command has printed what is shown. Three dots in shown
// match any text, and on a separate line any lines.
func compareOutput(shown, printed string) string {
	if shown == "" {
		return ""
	}
	shown, printed = normalize(shown), normalize(printed)
	pattern := strings.ReplaceAll(regexp.QuoteMeta(shown), `\.\.\.`, `.*`)
	pattern = regexp.MustCompile(`(?m)^ ?\.\*\n`).ReplaceAllLiteralString(pattern, `(.*\n)*`)
	if regexp.MustCompile(`^` + pattern + `$`).MatchString(printed) {
		return ""
	}
	return cmp.Diff(strings.Split(shown, "\n"), strings.Split(printed, "\n"))
}

// shell runs commands that share variables and background jobs.
type shell struct {
	input  io.Writer
	output *bufio.Scanner
}

// startShell starts bash in a directory. Its processes end with the test.
func startShell(tCtx ktesting.TContext, dir string) *shell {
	tCtx.Helper()
	command := exec.CommandContext(tCtx, "bash")
	command.Dir = dir
	// The environment of make and the settings of the user must not influence the commands.
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	kill := func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Cancel = kill
	input, err := command.StdinPipe()
	tCtx.ExpectNoError(err)
	output, err := command.StdoutPipe()
	tCtx.ExpectNoError(err)
	command.Stderr = command.Stdout
	tCtx.ExpectNoError(command.Start(), "starting bash")
	tCtx.Cleanup(func() {
		_ = kill() // It may have ended.
		_ = command.Wait()
	})
	return &shell{input: input, output: bufio.NewScanner(output)}
}

// endOfCommand is printed after the output of a command, with its exit status.
const endOfCommand = "--- end of command, exit status "

// run runs a command, and returns its output and its exit status.
func (s *shell) run(tCtx ktesting.TContext, command string) (printed, status string) {
	tCtx.Helper()
	_, err := fmt.Fprintf(s.input, "%s\necho \"%s$?\"\n", command, endOfCommand)
	tCtx.ExpectNoError(err, "writing to bash")
	var text bytes.Buffer
	for s.output.Scan() {
		before, status, ended := strings.Cut(s.output.Text(), endOfCommand)
		if ended {
			if before != "" {
				fmt.Fprintln(&text, before)
			}
			return text.String(), status
		}
		fmt.Fprintln(&text, before)
	}
	tCtx.Fatalf("bash has ended (%v) after:\n%s", s.output.Err(), text.String())
	return "", ""
}
