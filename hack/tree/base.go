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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mainModule is at the top of the tree, its siblings are under stagingDir.
const (
	mainModule = "k8s.io/kubernetes"
	stagingDir = "staging/src/"
)

// module is one module of the base.
type module struct {
	Path, Version, Dir, Sum, GoModSum, Error string
}

// baseSource provides the modules of the base.
type baseSource interface {
	pins(root string) ([]module, error)
	// fetch returns the pinned modules with the directories that hold them.
	fetch(root string, pins []module) ([]module, error)
	// download returns modules that nothing pins yet. What cannot be had has an Error.
	download(root string, modules []module) ([]module, error)
}

// moduleCache takes the base from Go's module cache, which downloads what is
// missing and checks it against go.sum.
type moduleCache struct{}

// goMod runs go mod. Its exit status counts only if it prints nothing, since go
// mod download reports the failure of a module in its output.
func goMod(root string, args ...string) (*json.Decoder, error) {
	cmd := exec.Command("go", append([]string{"mod"}, args...)...)
	cmd.Dir = root
	// The root go.work names modules that are not there before the tree is.
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return nil, fmt.Errorf("go mod %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return json.NewDecoder(bytes.NewReader(out)), nil
}

// pins returns the required modules that have the version of the base:
// k8s.io/kubernetes v1.x.y and its siblings v0.x.y.
func (moduleCache) pins(root string) ([]module, error) {
	var mod struct{ Require []module }
	dec, err := goMod(root, "edit", "-json")
	if err == nil {
		err = dec.Decode(&mod)
	}
	minor, ok := strings.CutPrefix(baseVersion(mod.Require), "v1.")
	if err != nil || !ok {
		return nil, fmt.Errorf("go.mod does not require %s at a v1 version, which is the base of the tree (%w)", mainModule, err)
	}
	var pins []module
	for _, m := range mod.Require {
		if m.Path == mainModule || strings.HasPrefix(m.Path, "k8s.io/") && m.Version == "v0."+minor {
			pins = append(pins, m)
		}
	}
	return pins, nil
}

func (c moduleCache) fetch(root string, pins []module) ([]module, error) {
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return nil, err
	}
	modules, err := c.download(root, pins)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if m.Error != "" {
			return nil, fmt.Errorf("downloading %s@%s: %s", m.Path, m.Version, m.Error)
		}
		// go mod download adds a missing sum to go.sum by itself; here a
		// module counts only if the repository vouches for it.
		line := m.Path + " " + m.Version + " " + m.Sum
		if !bytes.Contains(sums, []byte(line+"\n")) {
			return nil, fmt.Errorf("go.sum has no line %q: add it if the module is the one you want", line)
		}
	}
	return modules, nil
}

func (moduleCache) download(root string, wanted []module) ([]module, error) {
	args := []string{"download", "-json"}
	for _, m := range wanted {
		args = append(args, m.Path+"@"+m.Version)
	}
	dec, err := goMod(root, args...)
	if err != nil {
		return nil, err
	}
	var modules []module
	for dec.More() {
		var m module
		if err := dec.Decode(&m); err != nil {
			return nil, fmt.Errorf("reading the output of go mod download: %w", err)
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// baseVersion is the version of the base, empty if the modules lack it.
func baseVersion(modules []module) string {
	for _, m := range modules {
		if m.Path == mainModule {
			return m.Version
		}
	}
	return ""
}

// wantedBase returns the commit of the base that go.mod pins, and makes it once.
// It stays for good: a three-way merge after the next change of version needs it.
func (w *workspace) wantedBase() (string, error) {
	ref := "refs/bases/" + blobID(fmt.Append(nil, w.pins))
	if base, err := w.git.line("rev-parse", "-q", "--verify", ref); err == nil {
		return base, nil
	}
	fmt.Fprintf(w.out, "fetching Kubernetes %s (%d modules)\n", baseVersion(w.pins), len(w.pins))
	modules, err := w.src.fetch(w.root, w.pins)
	if err != nil {
		return "", err
	}
	tree, err := w.edit("--empty", func(g git) error {
		var list bytes.Buffer
		for _, m := range modules {
			if err := w.addModule(&list, g, m, modules); err != nil {
				return fmt.Errorf("module %s: %w", m.Path, err)
			}
		}
		_, err := g.run(list.Bytes(), "update-index", "-z", "--index-info")
		return err
	})
	if err != nil {
		return "", err
	}
	// The fixed date makes the same base the same commit everywhere.
	dated := w.git.withEnv("GIT_AUTHOR_DATE=2000-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z")
	base, err := dated.line("commit-tree", "-m", "Kubernetes "+baseVersion(modules), tree)
	if err != nil {
		return "", err
	}
	_, err = w.git.run(nil, "update-ref", ref, base)
	return base, err
}

// addModule stores the files of a module without copying them, and lists them
// with their places in the tree. vendor/ is left out: the tree builds with the
// module cache.
func (w *workspace) addModule(list io.Writer, g git, m module, all []module) error {
	index := filepath.Join(g.dir, "index."+strings.ReplaceAll(m.Path, "/", "."))
	from := treeGit(w.gitDir(), m.Dir).withIndex(index)
	// A threshold of one byte makes git write one pack instead of a file for each.
	if _, err := from.run(nil, "-c", "core.bigFileThreshold=1", "add", "-A", "-f", "."); err != nil {
		return err
	}
	items, err := from.fields(nil, "ls-files", "-s", "-z")
	if err != nil {
		return err
	}
	prefix := stagingDir + m.Path + "/"
	if m.Path == mainModule {
		prefix = ""
	}
	for _, item := range items {
		meta, path, _ := strings.Cut(item, "\t")
		data, err := os.ReadFile(filepath.Join(m.Dir, path))
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(prefix+path, "vendor/"):
			continue
		case prefix+path == "go.work":
			work, err := g.run(trimWorkFile(data, all), "hash-object", "-w", "--stdin")
			if err != nil {
				return err
			}
			meta = modeFile + " " + strings.TrimSpace(string(work)) + " 0"
		case bytes.HasPrefix(data, []byte("#!")):
			// Module zips carry no modes, but scripts are known by their first line.
			meta = strings.Replace(meta, modeFile, modeExec, 1)
		}
		fmt.Fprintf(list, "%s\t%s%s\x00", meta, prefix, path)
	}
	return nil
}

var useStaging = regexp.MustCompile(`(?m)^(?:use)?\s*\./` + stagingDir + `(\S+)\n`)

// trimWorkFile drops the staging modules that the base lacks from upstream's
// go.work, which would not load otherwise.
func trimWorkFile(work []byte, present []module) []byte {
	return useStaging.ReplaceAllFunc(work, func(line []byte) []byte {
		path := string(useStaging.FindSubmatch(line)[1])
		if slices.ContainsFunc(present, func(m module) bool { return m.Path == path }) {
			return line
		}
		return nil
	})
}

// junk are files that no one means to keep: leftovers of merges and builds, and
// what upstream's scripts install.
const junk = "*" + tempSuffix + "\n*.orig\n*.rej\n.go-build*\n/_output/\n/bin/\n/third_party/protoc*\n/third_party/etcd*\n/hack/tools/\n/vendor/\n"

// initRepo makes the empty repository of a tree.
func initRepo(gitDir string) error {
	g := treeGit(gitDir, filepath.Dir(gitDir))
	if _, err := g.run(nil, "-c", "init.defaultBranch=fork", "init", "-q", "--object-format=sha1", "--template="); err != nil {
		return err
	}
	for _, setting := range []string{
		"user.name=tree", "user.email=tree@localhost", "commit.gpgSign=false",
		"core.autocrlf=false", "core.safecrlf=false", "core.fileMode=true",
		// The tree can be made again at any time: speed over safety and size.
		"core.compression=0", "core.fsync=none", "gc.auto=0",
	} {
		name, value, _ := strings.Cut(setting, "=")
		if _, err := g.run(nil, "config", name, value); err != nil {
			return err
		}
	}
	info := filepath.Join(gitDir, "info")
	// Upstream's attributes would turn the CRLF files of its test data into LF.
	attributes := []byte("* -text -ident -filter -working-tree-encoding\n")
	return errors.Join(os.MkdirAll(info, 0o755), os.WriteFile(filepath.Join(info, "attributes"), attributes, 0o644),
		os.WriteFile(filepath.Join(info, "exclude"), []byte(junk), 0o644))
}

// useBase makes the tree's git diff compare with the base.
func (w *workspace) useBase(base string) error {
	if w.st.Base == base {
		return nil
	}
	for _, args := range [][]string{
		{"update-ref", "refs/tags/base", base},
		{"symbolic-ref", "HEAD", "refs/heads/fork-" + baseVersion(w.pins)},
		{"reset", "-q", base},
	} {
		if _, err := w.git.run(nil, args...); err != nil {
			return err
		}
	}
	return nil
}
