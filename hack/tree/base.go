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
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// mainModule is laid at the top of the tree, its siblings under stagingDir.
const (
	mainModule = "k8s.io/kubernetes"
	stagingDir = "staging/src"
)

// module is one module of the base.
type module struct {
	Path, Version, Dir, Sum, Error string
}

// baseSource tells where the modules of the base come from.
type baseSource interface {
	// pins lists the modules of the base without fetching anything.
	pins(root string) ([]module, error)
	// fetch returns the modules with the directories that hold them.
	fetch(root string, pins []module) ([]module, error)
}

// moduleCache takes the base from Go's module cache, which downloads what is
// missing and checks it against go.sum.
type moduleCache struct{}

// goTool runs the go command. Its error counts only if it says nothing else,
// since go mod download reports the failure of a module in its output.
func goTool(root string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	// The root go.work names modules that are not there before the tree is.
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args[:2], " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// pins returns the required modules that have the version of the base:
// k8s.io/kubernetes v1.x.y and its siblings v0.x.y.
func (moduleCache) pins(root string) ([]module, error) {
	out, err := goTool(root, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var mod struct{ Require []module }
	if err := json.Unmarshal(out, &mod); err != nil {
		return nil, fmt.Errorf("reading go.mod: %w", err)
	}
	staging := ""
	for _, m := range mod.Require {
		if m.Path == mainModule && strings.HasPrefix(m.Version, "v1.") {
			staging = "v0." + strings.TrimPrefix(m.Version, "v1.")
		}
	}
	if staging == "" {
		return nil, fmt.Errorf("go.mod does not require %s at a v1 version, which is the base of the tree", mainModule)
	}
	var pins []module
	for _, m := range mod.Require {
		if m.Path == mainModule || strings.HasPrefix(m.Path, "k8s.io/") && m.Version == staging {
			pins = append(pins, m)
		}
	}
	return pins, nil
}

func (moduleCache) fetch(root string, pins []module) ([]module, error) {
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return nil, err
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range pins {
		args = append(args, m.Path+"@"+m.Version)
	}
	out, err := goTool(root, args...)
	if err != nil {
		return nil, err
	}
	var modules []module
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var m module
		if err := dec.Decode(&m); err == io.EOF {
			return modules, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go mod download: %w", err)
		}
		if m.Error != "" {
			return nil, fmt.Errorf("downloading %s@%s: %s", m.Path, m.Version, m.Error)
		}
		// go mod download adds a missing sum to go.sum by itself; here a
		// module counts only if the repository vouches for it.
		if !bytes.Contains(sums, []byte(m.Path+" "+m.Version+" "+m.Sum+"\n")) {
			return nil, fmt.Errorf("go.sum has no line %q: add it if the module is the one you want", m.Path+" "+m.Version+" "+m.Sum)
		}
		modules = append(modules, m)
	}
}

// baseKey identifies a base by its modules.
func baseKey(pins []module) string {
	h := sha256.New()
	for _, m := range pins {
		fmt.Fprintln(h, m.Path, m.Version)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// baseVersion is the version of the base, for messages.
func baseVersion(pins []module) string {
	for _, m := range pins {
		if m.Path == mainModule {
			return m.Version
		}
	}
	return "unknown"
}

// layBase copies the modules into dir as a Kubernetes tree.
func layBase(dir string, modules []module) error {
	present := map[string]bool{}
	var jobs []copyJob
	for _, m := range modules {
		dst := dir
		if m.Path != mainModule {
			dst = filepath.Join(dir, stagingDir, filepath.FromSlash(m.Path))
			present["./"+stagingDir+"/"+m.Path] = true
		}
		more, err := listModule(m.Dir, dst, m.Path == mainModule)
		if err != nil {
			return fmt.Errorf("module %s: %w", m.Path, err)
		}
		jobs = append(jobs, more...)
	}
	if err := copyAll(jobs); err != nil {
		return err
	}
	// Upstream's scripts change into this directory, which no module has.
	if err := os.MkdirAll(filepath.Join(dir, "hack/tools"), 0o755); err != nil {
		return err
	}
	return trimWorkFile(filepath.Join(dir, "go.work"), present)
}

type copyJob struct{ src, dst string }

// listModule makes the directories of a module and lists the files to copy.
// vendor/ is left out: the tree builds with the module cache.
func listModule(src, dst string, dropVendor bool) ([]copyJob, error) {
	var jobs []copyJob
	err := filepath.WalkDir(src, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, file)
		if err != nil {
			return err
		}
		if !d.IsDir() {
			jobs = append(jobs, copyJob{file, filepath.Join(dst, rel)})
			return nil
		}
		if dropVendor && rel == "vendor" {
			return fs.SkipDir
		}
		return os.MkdirAll(filepath.Join(dst, rel), 0o755)
	})
	return jobs, err
}

// copyAll copies with a few workers: the time goes into system calls.
func copyAll(jobs []copyJob) error {
	queue := make(chan copyJob)
	workers := max(2, runtime.NumCPU())
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for job := range queue {
				if errs[i] == nil {
					errs[i] = copyBaseFile(job)
				}
			}
		})
	}
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	wg.Wait()
	return errors.Join(errs...)
}

// copyBaseFile copies one file. Module zips carry no modes, so scripts are
// known by their first line and are made executable again.
func copyBaseFile(job copyJob) error {
	data, err := os.ReadFile(job.src)
	if err != nil {
		return err
	}
	mode := modeFile
	if bytes.HasPrefix(data, []byte("#!")) {
		mode = modeExec
	}
	return os.WriteFile(job.dst, data, permOf(mode))
}

// trimWorkFile drops the staging modules that the base does not have from the
// tree's go.work, which would not load otherwise.
func trimWorkFile(file string, present map[string]bool) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the base has no go.work: %w", err)
	}
	var kept bytes.Buffer
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		use := strings.TrimPrefix(strings.TrimSpace(sc.Text()), "use ")
		if strings.HasPrefix(use, "./"+stagingDir+"/") && !present[use] {
			continue
		}
		kept.WriteString(sc.Text() + "\n")
	}
	return os.WriteFile(file, kept.Bytes(), 0o644)
}

// initRepo makes the empty repository of a tree.
func initRepo(gitDir string) error {
	if err := os.MkdirAll(gitDir, 0o755); err != nil {
		return err
	}
	g := treeGit(gitDir, filepath.Dir(gitDir))
	if _, err := g.run(nil, "-c", "init.defaultBranch=fork", "init", "-q", "--object-format=sha1", "--template="); err != nil {
		return err
	}
	settings := [][2]string{
		{"user.name", "tree"}, {"user.email", "tree@localhost"},
		{"core.autocrlf", "false"}, {"core.safecrlf", "false"}, {"core.fileMode", "true"},
		// The tree can be made again at any time: speed over safety and size.
		{"core.compression", "0"}, {"core.fsync", "none"}, {"gc.auto", "0"},
		{"commit.gpgSign", "false"},
	}
	for _, s := range settings {
		if _, err := g.run(nil, "config", s[0], s[1]); err != nil {
			return err
		}
	}
	// Upstream's attributes would turn the CRLF files of its test data into LF.
	info := filepath.Join(gitDir, "info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte("* -text -ident -filter -working-tree-encoding\n"), 0o644)
}

// commitBase adds all files of the work tree to g's index and commits them. The
// commit has a fixed date, so that the same base is the same commit everywhere.
func commitBase(g git, version string) (string, error) {
	// A threshold of one byte makes git write one pack instead of 23000 files.
	if _, err := g.run(nil, "-c", "core.bigFileThreshold=1", "add", "-A", "-f", "."); err != nil {
		return "", err
	}
	tree, err := g.line("write-tree")
	if err != nil {
		return "", err
	}
	const date = "2000-01-01T00:00:00Z"
	dated := g.withEnv("GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	return dated.line("commit-tree", "-m", "Kubernetes "+version, tree)
}

// refBase is where the tree keeps the pristine base for git diff.
const refBase = "refs/tags/base"
