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
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// git runs the git binary on one repository.
type git struct {
	dir, index string
	env        []string
}

// repoGit is git on the developer's repository. It respects the developer's
// configuration (safe.directory, ignored files).
func repoGit(dir string) git { return gitIn(dir, "GIT_OPTIONAL_LOCKS=0") }

// treeGit is git on the repository of the tree, with any work tree. The patches
// must be the same on every machine, so it reads no configuration but the tree's.
func treeGit(gitDir, workTree string) git {
	return gitIn(workTree, "GIT_DIR="+gitDir, "GIT_WORK_TREE="+workTree, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
}

// gitIn drops git's variables from the environment: hooks and aliases run with
// GIT_DIR and GIT_INDEX_FILE set.
func gitIn(dir string, vars ...string) git {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	return git{dir: dir, env: append(append(env, "LC_ALL=C"), vars...)}
}

// withEnv returns a copy with more environment variables.
func (g git) withEnv(vars ...string) git {
	g.env = slices.Concat(g.env, vars)
	return g
}

// withIndex returns a copy that works on another index file.
func (g git) withIndex(file string) git {
	g.index = file
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
		message := strings.ReplaceAll(strings.TrimSpace(stderr.String()), "error: ", "")
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.ReplaceAll(message, "\n", "; "))
	}
	return out, err
}

// line is run for commands that answer with one line.
func (g git) line(args ...string) (string, error) {
	out, err := g.run(nil, args...)
	return strings.TrimSpace(string(out)), err
}

// fields is run for commands that read and write lists of NUL-terminated items,
// which git does not quote.
func (g git) fields(items []string, args ...string) ([]string, error) {
	out, err := g.run([]byte(strings.Join(items, "\x00")), args...)
	s := strings.TrimSuffix(string(out), "\x00")
	if err != nil || s == "" {
		return nil, err
	}
	return strings.Split(s, "\x00"), nil
}

// blobID is the id that git gives to a file with this content.
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// entry is a file of a git tree, as its mode and blob id; empty if there is none.
type entry string

func newEntry(mode, blob string) entry {
	if mode == "" || mode == "000000" {
		return ""
	}
	return entry(mode + " " + blob)
}

func (e entry) split() (mode, blob string) {
	mode, blob, _ = strings.Cut(string(e), " ")
	return mode, blob
}

// lsTree lists all files of a tree or commit.
func (g git) lsTree(tree string) (map[string]entry, error) {
	items, err := g.fields(nil, "ls-tree", "-r", "-z", "--full-tree", tree)
	files := make(map[string]entry, len(items))
	for _, item := range items {
		meta, path, _ := strings.Cut(item, "\t")
		f := strings.Fields(meta)
		files[path] = newEntry(f[0], f[2])
	}
	return files, err
}

// change is a path that differs between two trees.
type change struct {
	path     string
	old, new entry
}

// changes runs a command of the family of git diff and parses its raw output.
func (g git) changes(args ...string) ([]change, error) {
	items, err := g.fields(nil, append(args, "--raw", "-z", "--no-renames")...)
	var changes []change
	for i := 0; i+1 < len(items); i += 2 {
		f := strings.Fields(strings.TrimPrefix(items[i], ":"))
		changes = append(changes, change{items[i+1], newEntry(f[0], f[2]), newEntry(f[1], f[3])})
	}
	return changes, err
}

// The modes that git knows.
const (
	modeFile = "100644"
	modeExec = "100755"
	modeLink = "120000"
)

// content is a file as git sees it: absent (no mode), a symbolic link (data is
// its target), or regular.
type content struct {
	mode string
	data []byte
}

// entry returns what git would store for the content.
func (c content) entry() entry { return newEntry(c.mode, blobID(c.data)) }

// readContent reads a file without following a link.
func readContent(file string) (content, error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return content{}, nil
	case err != nil:
		return content{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		return content{modeLink, []byte(target)}, err
	case info.Mode().IsRegular():
		mode := modeFile
		if info.Mode()&0o100 != 0 {
			mode = modeExec
		}
		data, err := os.ReadFile(file)
		return content{mode, data}, err
	}
	return content{}, fmt.Errorf("%s is neither a file nor a link: move it away", file)
}

// tempSuffix marks a file that is being written.
const tempSuffix = ".tree-tmp"

// writeFile puts a file or a link in the place of whatever is there, in one step:
// an interrupted run leaves the old file or the new one. It leaves a file alone
// that is right already, and reports whether it wrote.
func writeFile(file string, want content) (bool, error) {
	if have, err := readContent(file); err != nil || have.entry() == want.entry() {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return false, err
	}
	temp := file + tempSuffix
	os.Remove(temp)
	err := os.ErrInvalid
	switch want.mode {
	case modeLink:
		err = os.Symlink(string(want.data), temp)
	case modeExec:
		err = os.WriteFile(temp, want.data, 0o755)
	case modeFile:
		err = os.WriteFile(temp, want.data, 0o644)
	}
	if err == nil {
		err = os.Rename(temp, file)
	}
	return true, err
}

// removeFile removes a file and the directories that it leaves empty, up to
// but without top.
func removeFile(top, path string) error {
	if err := os.Remove(filepath.Join(top, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	for dir != "." && os.Remove(filepath.Join(top, dir)) == nil { // fails if it is not empty
		dir = filepath.Dir(dir)
	}
	return nil
}

// lock keeps two runs on one repository apart. Child processes inherit it on
// purpose: the next run also waits for a git that outlives a killed run.
func lock(file string, out io.Writer) (release func() error, err error) {
	fd, err := syscall.Open(file, syscall.O_CREAT|syscall.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(out, "another run works on the tree; waiting for it to end")
		err = syscall.Flock(fd, syscall.LOCK_EX)
	}
	return func() error { return syscall.Close(fd) }, err
}
