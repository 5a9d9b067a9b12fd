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
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// git runs the git binary on one repository.
type git struct {
	dir string
	env []string
}

// repoGit is git on the developer's repository. The developer's configuration
// is respected (safe.directory, ignored files); only variables that would point
// git at another repository are dropped.
func repoGit(dir string) git {
	return git{dir: dir, env: append(cleanEnv(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")}
}

// treeGit is git on the tree. The patches must come out the same on every
// machine, so no configuration but the tree's own is read.
func treeGit(gitDir, workTree string) git {
	return git{dir: workTree, env: append(cleanEnv(), "LC_ALL=C",
		"GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")}
}

// cleanEnv is the environment without git's variables: hooks and aliases run
// with GIT_DIR and GIT_INDEX_FILE set.
func cleanEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "LC_ALL=") {
			env = append(env, v)
		}
	}
	return env
}

// withEnv returns a copy with more environment variables.
func (g git) withEnv(vars ...string) git {
	g.env = append(append([]string{}, g.env...), vars...)
	return g
}

// withIndex returns a copy that works on another index file.
func (g git) withIndex(file string) git {
	return g.withEnv("GIT_INDEX_FILE=" + file)
}

// run executes git with the given input and returns its output.
func (g git) run(stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = g.dir, g.env, bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, &gitError{command: args[0], stderr: strings.TrimSpace(stderr.String()), err: err}
	}
	return out, nil
}

// line is run for commands that answer with one line.
func (g git) line(args ...string) (string, error) {
	out, err := g.run(nil, args...)
	return strings.TrimSpace(string(out)), err
}

// fields is run for commands that answer with a list of NUL-terminated items.
func (g git) fields(stdin []byte, args ...string) ([]string, error) {
	out, err := g.run(stdin, args...)
	if err != nil {
		return nil, err
	}
	return splitNUL(out), nil
}

// gitError keeps what git said apart from the command, since the reason is
// what the developer needs to see.
type gitError struct {
	command, stderr string
	err             error
}

func (e *gitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %v", e.command, e.err)
	}
	return fmt.Sprintf("git %s: %s", e.command, e.stderr)
}

func (e *gitError) Unwrap() error { return e.err }

// splitNUL and joinNUL are for git's -z formats, in which paths are not quoted.
func splitNUL(out []byte) []string {
	s := strings.TrimSuffix(string(out), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

func joinNUL(items []string) []byte {
	var b bytes.Buffer
	for _, item := range items {
		b.WriteString(item)
		b.WriteByte(0)
	}
	return b.Bytes()
}

// blobID is the id that git gives to a file with this content.
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// entry is a file of a git tree.
type entry struct {
	mode, blob string
}

// lsTree lists all files of a tree or commit.
func (g git) lsTree(tree string) (map[string]entry, error) {
	items, err := g.fields(nil, "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	files := make(map[string]entry, len(items))
	for _, item := range items {
		meta, path, _ := strings.Cut(item, "\t")
		f := strings.Fields(meta)
		files[path] = entry{mode: f[0], blob: f[2]}
	}
	return files, nil
}

// change is a path that differs between two trees; an empty mode says that
// the file is absent on that side.
type change struct {
	path     string
	old, new entry
}

// diffTrees lists what differs between two trees. Renames are not detected: a
// file is written or removed by its own path, whatever became of the content.
func (g git) diffTrees(from, to string) ([]change, error) {
	if from == to {
		return nil, nil
	}
	items, err := g.fields(nil, "diff-tree", "-r", "-z", "--no-renames", from, to)
	if err != nil {
		return nil, err
	}
	var changes []change
	for i := 0; i+1 < len(items); i += 2 {
		f := strings.Fields(strings.TrimPrefix(items[i], ":"))
		c := change{path: items[i+1], old: entry{f[0], f[2]}, new: entry{f[1], f[3]}}
		if c.old.mode == "000000" {
			c.old = entry{}
		}
		if c.new.mode == "000000" {
			c.new = entry{}
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// blobs reads the contents of several blobs in one go: a process for each would
// take seconds for the generated files alone.
func (g git) blobs(ids []string) (map[string][]byte, error) {
	out, err := g.run([]byte(strings.Join(ids, "\n")+"\n"), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	contents := make(map[string][]byte, len(ids))
	for _, id := range ids {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		var gotID, kind string
		var size int
		if n, _ := fmt.Sscan(string(head), &gotID, &kind, &size); n != 3 || gotID != id {
			return nil, fmt.Errorf("git object %s: %s", id, head)
		}
		contents[id] = rest[:size]
		out = rest[size+1:]
	}
	return contents, nil
}
