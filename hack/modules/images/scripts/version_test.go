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

// Package scripts tests the scripts that name and make releases, in small repositories of their
// own.
package scripts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// base is the version of Kubernetes that the fork patches, number is the same without the "v".
var (
	base   = readBase()
	number = strings.TrimPrefix(base, "v")
)

// readBase reads go.mod of the fork, so that no test names a version.
func readBase() string {
	data, err := os.ReadFile("../../../../go.mod")
	if err != nil {
		panic(err)
	}
	found := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v\S+)$`).FindSubmatch(data)
	if found == nil {
		panic("go.mod requires no version of k8s.io/kubernetes")
	}
	return string(found[1])
}

// repository is a git repository with scripts of ours and files that go into programs.
type repository struct {
	t   *testing.T
	dir string
	// env is what the scripts and git get beside a minimum.
	env []string
}

// newRepository returns a repository without commits.
func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t: t, dir: t.TempDir()}
	r.write("go.mod", "module example.com/fork\n\ngo 1.26\n\nrequire (\n\tk8s.io/kubernetes "+base+"\n)\n")
	r.write("pkg/a.go", "package pkg\n")
	r.write("docs/a.md", "# A\n")
	for _, script := range []string{"version.sh", "release.sh"} {
		data, err := os.ReadFile(filepath.Join("../../..", script))
		if err != nil {
			t.Fatal(err)
		}
		r.write("hack/"+script, string(data))
	}
	r.git("init", "--quiet", "--initial-branch=main")
	return r
}

// newRelease returns a repository with one commit, which a tag names.
func newRelease(t *testing.T) *repository {
	t.Helper()
	r := newRepository(t)
	r.commit("pkg/a.go")
	r.git("tag", "--annotate", "--message=2", base+"+graceful.2")
	return r
}

func (r *repository) write(path, content string) {
	r.t.Helper()
	path = filepath.Join(r.dir, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
		r.t.Fatal(err)
	}
}

// change adds a line to a file.
func (r *repository) change(path string) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	r.write(path, string(data)+"// changed\n")
}

// commit changes a file, commits it with what else has changed, and returns the commit.
func (r *repository) commit(path string) string {
	r.t.Helper()
	r.change(path)
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message="+path)
	return r.git("rev-parse", "HEAD")
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	out, err := r.command("git", args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// command returns a command that reads no configuration of the user.
func (r *repository) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.Dir = r.dir
	for _, variable := range []string{"PATH", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOTOOLCHAIN"} {
		if value, found := os.LookupEnv(variable); found {
			command.Env = append(command.Env, variable+"="+value)
		}
	}
	command.Env = append(command.Env, "HOME="+r.dir+"/.git", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-11-22T10:00:00+0900",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-11-23T08:00:00+0900")
	command.Env = append(command.Env, r.env...)
	return command
}

// result is what a command has printed.
type result struct {
	stdout, stderr string
	failed         bool
}

// try runs a command that may fail.
func (r *repository) try(name string, args ...string) result {
	r.t.Helper()
	var stdout, stderr strings.Builder
	command := r.command(name, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return result{strings.TrimSuffix(stdout.String(), "\n"), stderr.String(), err != nil}
}

// version returns what hack/version.sh prints, which must print no warning.
func (r *repository) version(args ...string) string {
	r.t.Helper()
	got := r.try("hack/version.sh", args...)
	if got.failed || got.stderr != "" {
		r.t.Fatalf("hack/version.sh %s: failed %t, %s", strings.Join(args, " "), got.failed, got.stderr)
	}
	return got.stdout
}

func (r *repository) expectVersion(want string) {
	r.t.Helper()
	for _, argument := range []string{"version", "release"} {
		if got := r.version(argument); got != want {
			r.t.Errorf("hack/version.sh %s: %q, want %q", argument, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, test := range []struct {
		name string
		// prepare begins with one commit, which the base with +graceful.2 names.
		prepare func(r *repository)
		// want is what follows the base and +graceful. HEAD stands for the last commit.
		want string
	}{
		{"tag", func(*repository) {}, "2"},
		{"lightweight tag", func(r *repository) { r.commit("pkg/a.go"); r.git("tag", base+"+graceful.3") }, "3"},
		{"documents after a tag", func(r *repository) { r.commit("docs/a.md") }, "2"},
		{"tests after a tag", func(r *repository) {
			r.commit("pkg/a_test.go")
			r.commit("pkg/a_test.go.patch")
			r.commit("pkg/testdata/a")
		}, "2"},
		{"commits after a tag", func(r *repository) { r.commit("pkg/a.go"); r.commit("docs/a.md"); r.commit("go.mod") }, "2.2.gHEAD"},
		{"generated code after a tag", func(r *repository) { r.commit("hack/generated.patch") }, "2.1.gHEAD"},
		{"tag on documents", func(r *repository) {
			r.commit("pkg/a.go")
			r.commit("docs/a.md")
			r.git("tag", base+"+graceful.3")
		}, "3"},
		{"merge after a tag", func(r *repository) {
			r.git("checkout", "--quiet", "-b", "side")
			r.commit("pkg/b.go")
			r.git("checkout", "--quiet", "main")
			r.commit("pkg/a.go")
			r.git("merge", "--quiet", "--no-ff", "side")
		}, "2.3.gHEAD"},
		{"two annotated tags", func(r *repository) {
			r.git("tag", "--annotate", "--message=10", base+"+graceful.10")
			// git describe would take the later one.
			r.env = []string{"GIT_COMMITTER_DATE=2026-11-24T08:00:00Z"}
			r.git("tag", "--annotate", "--force", "--message=2", base+"+graceful.2")
		}, "10"},
		{"annotated and lightweight tags", func(r *repository) { r.git("tag", base+"+graceful.10"); r.git("tag", base+"+graceful.9") }, "10"},
		{"lightweight tags", func(r *repository) {
			r.commit("pkg/a.go")
			r.git("tag", base+"+graceful.10")
			r.git("tag", base+"+graceful.3")
		}, "10"},
		{"candidate", func(r *repository) { r.git("tag", base+"+graceful.3-rc.1") }, "3-rc.1"},
		{"release of a candidate", func(r *repository) {
			r.commit("pkg/a.go")
			for _, n := range []string{"3-rc.1", "3", "3-rc.2"} {
				r.git("tag", base+"+graceful."+n)
			}
		}, "3"},
		{"tags that are no version", func(r *repository) {
			r.commit("docs/a.md")
			for _, odd := range []string{"9/rc", `9"x`, "9_1", "$(id)", "", "9..1", "9;x", "9'", "9é"} {
				// git refuses two of these.
				r.try("git", "tag", base+"+graceful."+odd)
			}
		}, "2"},
		{"a tag that is no version beside one", func(r *repository) { r.git("tag", base+"+graceful.9/rc") }, "2"},
		{"tags of others", func(r *repository) {
			r.commit("docs/a.md")
			for _, other := range []string{base, "v1.0.0+graceful.5", base + "0+graceful.5", "graceful.5", base + "+other.5"} {
				r.git("tag", other)
			}
		}, "2"},
		{"tag of another branch", func(r *repository) {
			r.git("checkout", "--quiet", "-b", "side")
			r.commit("pkg/a.go")
			r.git("tag", base+"+graceful.3")
			r.git("checkout", "--quiet", "main")
		}, "2"},
		{"branch with the name of the tag", func(r *repository) { r.git("branch", base+"+graceful.2"); r.commit("pkg/a.go") }, "2.1.gHEAD"},
		{"changed file", func(r *repository) { r.change("pkg/a.go") }, "2.dirty"},
		{"changed file after commits", func(r *repository) { r.commit("pkg/a.go"); r.change("go.mod") }, "2.1.gHEAD.dirty"},
		{"staged file", func(r *repository) { r.change("cmd/a.go"); r.git("add", "--all") }, "2.dirty"},
		{"new file", func(r *repository) { r.change("staging/src/a.go") }, "2.dirty"},
		{"new file that git is not to show", func(r *repository) { r.git("config", "status.showUntrackedFiles", "no"); r.change("plugin/a.go") }, "2.dirty"},
		{"removed file", func(r *repository) { r.git("rm", "--quiet", "pkg/a.go") }, "2.dirty"},
		{"changed documents and tests", func(r *repository) { r.change("docs/a.md"); r.change("docs/new.md"); r.change("pkg/a_test.go") }, "2"},
		{"work tree elsewhere", func(r *repository) {
			r.commit("pkg/a.go")
			elsewhere := filepath.Join(r.t.TempDir(), "with space")
			r.git("worktree", "add", "--quiet", "--detach", elsewhere)
			r.dir = elsewhere
		}, "2.1.gHEAD"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRelease(t)
			test.prepare(r)
			head := r.git("rev-parse", "--short=12", "HEAD")
			r.expectVersion(base + "+graceful." + strings.Replace(test.want, "HEAD", head, 1))
		})
	}
}

func TestVersionWithoutTags(t *testing.T) {
	r := newRepository(t)
	r.commit("pkg/a.go")
	r.expectVersion(base + "+graceful.0")
}

// TestStamp reads all that programs get.
func TestStamp(t *testing.T) {
	r := newRelease(t)
	r.env = []string{"TZ=Asia/Tokyo", "LC_ALL=C"}
	commit := r.commit("pkg/a.go")
	r.commit("docs/a.md")
	if got := r.version("revision"); got != commit {
		t.Errorf("revision %s, want the last commit with code, %s", got, commit)
	}
	// GIT_COMMITTER_DATE in UTC.
	const date = "2026-11-22T23:00:00Z"
	if got := r.version("date"); got != date {
		t.Errorf("date %s", got)
	}
	expectStamp := func(state, version string) {
		t.Helper()
		var want []string
		for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
			want = append(want, "-X "+p+".gitVersion="+version, "-X "+p+".gitMajor=1", "-X "+p+".gitMinor="+strings.Split(base, ".")[1],
				"-X "+p+".gitCommit="+commit, "-X "+p+".gitTreeState="+state, "-X "+p+".buildDate="+date)
		}
		if got := r.version(); got != strings.Join(want, " ") {
			t.Errorf("flags\n%s\nwant\n%s", got, strings.Join(want, " "))
		}
	}
	expectStamp("clean", base+"+graceful.2.1.g"+commit[:12])
	r.change("pkg/a.go")
	expectStamp("dirty", base+"+graceful.2.1.g"+commit[:12]+".dirty")
	r.env = append(r.env, "VERSION="+base+"+mine.1")
	expectStamp("dirty", base+"+mine.1")
}

func TestVersionThatIsGiven(t *testing.T) {
	r := newRelease(t)
	r.env = []string{""}
	for _, good := range []string{"+graceful.2", "+a", "+A-b.0.1", "+2026-11-23"} {
		r.env[0] = "VERSION=" + base + good
		r.expectVersion(base + good)
	}
	r.env[0] = "VERSION="
	r.expectVersion(base + "+graceful.2")
	for _, bad := range []string{
		"v1.0.0+graceful.2", base + "0+graceful.2", base, base + "+", base + "+a..b", base + "+.a", base + "+a.", base + "+a b", base + "+a_b", base + "-rc.1+a",
		base + "+a'", base + `+a"`, base + "+$(id)", base + "+a/b", base + "+../a", base + "+a\nb", base + "+a\n", " " + base + "+a",
		base + "+é", number + "+a", base + "+a+b", base + "+" + strings.Repeat("a", 128-len(base)),
	} {
		r.env[0] = "VERSION=" + bad
		for _, argument := range []string{"version", "release", "flags"} {
			got := r.try("hack/version.sh", argument)
			if !got.failed || got.stdout != "" || !strings.Contains(got.stderr, "VERSION=") || !strings.Contains(got.stderr, base+"+graceful.1") {
				t.Errorf("VERSION=%q: hack/version.sh %s: %+v", bad, argument, got)
			}
		}
	}
	r.env[0] = "VERSION=" + base + "+" + strings.Repeat("a", 127-len(base))
	r.expectVersion(strings.TrimPrefix(r.env[0], "VERSION="))
}

// TestVersionOfArchive is about sources without their history: programs say so, and a release needs
// a name.
func TestVersionOfArchive(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(r *repository)
	}{
		{"in no repository", func(r *repository) { r.remove(".git") }},
		{"in the repository of another project", func(r *repository) {
			outer := &repository{t: r.t, dir: r.t.TempDir()}
			unpacked := filepath.Join(outer.dir, "unpacked")
			r.remove(".git")
			if err := os.CopyFS(unpacked, os.DirFS(r.dir)); err != nil {
				r.t.Fatal(err)
			}
			r.dir = unpacked
			outer.git("init", "--quiet")
			outer.commit("pkg/a.go")
			outer.git("tag", base+"+graceful.3")
		}},
		{"in a repository that has only other files", func(r *repository) {
			r.remove(".git")
			r.git("init", "--quiet")
			r.change("docs/a.md")
			r.git("add", "docs")
			r.git("commit", "--quiet", "--message=documents")
			r.git("tag", base+"+graceful.3")
		}},
		{"in a repository without commits", func(r *repository) { r.remove(".git"); r.git("init", "--quiet") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRelease(t)
			test.prepare(r)
			if got := r.try("hack/version.sh", "version"); got.stdout != base+"+graceful.0" || got.failed {
				t.Errorf("%+v", got)
			}
			if got := r.try("hack/version.sh"); got.failed || !strings.Contains(got.stdout, "version.gitCommit=unknown -X k8s.io/component-base/version.gitTreeState=archive -X k8s.io/component-base/version.buildDate=1970-01-01T00:00:00Z") {
				t.Errorf("%+v", got)
			}
			if got := r.try("hack/version.sh", "release"); !got.failed || got.stdout != "" || !strings.Contains(got.stderr, "VERSION="+base+"+graceful.1") {
				t.Errorf("a release of sources without history: %+v", got)
			}
			r.env = []string{"VERSION=" + base + "+graceful.8"}
			if got := r.try("hack/version.sh", "release"); got.stdout != base+"+graceful.8" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func (r *repository) remove(path string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, path)); err != nil {
		r.t.Fatal(err)
	}
}

// TestVersionOfShallowClone is about clones as CI makes them: they lack tags, and the last commit
// that they have looks as if it had changed everything.
func TestVersionOfShallowClone(t *testing.T) {
	origin := newRelease(t)
	code := origin.commit("pkg/a.go")
	origin.commit("docs/a.md")
	r := &repository{t: t, dir: filepath.Join(t.TempDir(), "clone")}
	origin.git("clone", "--quiet", "--depth=1", "file://"+origin.dir, r.dir)
	for _, env := range [][]string{nil, {"VERSION=" + base + "+graceful.8"}} {
		r.env = env
		got := r.try("hack/version.sh", "release")
		if !got.failed || got.stdout != "" || !strings.Contains(got.stderr, "git fetch --unshallow --tags") {
			t.Errorf("a release of a shallow clone: %+v", got)
		}
		if got := r.try("hack/version.sh"); got.failed {
			t.Errorf("programs of a shallow clone: %+v", got)
		}
	}
	r.env = nil
	r.git("fetch", "--quiet", "--unshallow", "--tags")
	r.expectVersion(base + "+graceful.2.1.g" + code[:12])
}

// TestVersionWhereGitRefuses is about a repository of another user, such as one that is mounted
// into a container: a release of it must not look like one of an archive.
func TestVersionWhereGitRefuses(t *testing.T) {
	r := newRelease(t)
	r.env = []string{"GIT_TEST_ASSUME_DIFFERENT_OWNER=1"}
	got := r.try("hack/version.sh", "version")
	if got.stdout != base+"+graceful.0" || !strings.Contains(got.stderr, "dubious ownership") {
		t.Errorf("programs: %+v", got)
	}
	r.env = append(r.env, "VERSION="+base+"+graceful.8")
	got = r.try("hack/version.sh", "release")
	if !got.failed || got.stdout != "" || !strings.Contains(got.stderr, "dubious ownership") {
		t.Errorf("a release: %+v", got)
	}
}

// TestVersionWithSignatures is about users whose git shows signatures: what gpg prints is no part
// of a commit's name.
func TestVersionWithSignatures(t *testing.T) {
	r := newRelease(t)
	r.write(".git/gpg", `#!/bin/sh
case "$*" in
  *--verify*) echo 'gpg: Good signature' >&2 ;;
  *) cat >/dev/null; echo '[GNUPG:] SIG_CREATED ' >&2; printf -- '-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----\n' ;;
esac
`)
	r.git("config", "gpg.program", filepath.Join(r.dir, ".git/gpg"))
	r.git("config", "log.showSignature", "true")
	r.git("config", "commit.gpgSign", "true")
	commit := r.commit("pkg/a.go")
	if shown := r.git("log", "-1", "--format=%H"); !strings.Contains(shown, "Good signature") {
		t.Fatalf("git shows no signature: %s", shown)
	}
	if got := r.version("revision"); got != commit {
		t.Errorf("revision %q, want %q", got, commit)
	}
	if got := r.version("date"); got != "2026-11-22T23:00:00Z" {
		t.Errorf("date %q", got)
	}
	r.expectVersion(base + "+graceful.2.1.g" + commit[:12])
}

func TestVersionErrors(t *testing.T) {
	r := newRelease(t)
	if got := r.try("hack/version.sh", "tag"); !got.failed || !strings.Contains(got.stderr, "usage: hack/version.sh") {
		t.Errorf("%+v", got)
	}
	for _, module := range []string{"module a\n", "module a\n\nrequire k8s.io/kubernetes v2\n", fmt.Sprintf("module a\n\nreplace k8s.io/kubernetes => ../%s\n", base)} {
		r.write("go.mod", module)
		if got := r.try("hack/version.sh"); !got.failed || !strings.Contains(got.stderr, "go.mod requires no version of k8s.io/kubernetes") {
			t.Errorf("%q: %+v", module, got)
		}
	}
	r.write("go.mod", "module a\n\nrequire (\n\tk8s.io/kubernetes v1.99.0-rc.1\n)\n")
	if got := r.version(); !slices.Contains(strings.Fields(got), "k8s.io/component-base/version.gitMinor=99") {
		t.Errorf("%s", got)
	}
}
