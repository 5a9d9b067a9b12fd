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
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// failpoint is called with the name of each step that a killed run could stop
// after. Tests set it to make a run fail there.
var failpoint = func(step string) error { return nil }

// writeAtomic replaces a file in one step, so that a killed run leaves either
// the old content or the new. The temporary file is made in tmpDir, where
// nobody mistakes it for a new file of the tree or of the repository.
func writeAtomic(file string, content []byte, perm fs.FileMode, tmpDir string) error {
	if err := failpoint("write " + file); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp, err := writeTemp(tmpDir, content, perm)
	if err != nil {
		return err
	}
	err = os.Rename(tmp, file)
	if errors.Is(err, syscall.EXDEV) {
		// _output may be a link to another disk; a file next to its target
		// is then the only way to replace it in one step.
		os.Remove(tmp)
		if tmp, err = writeTemp(filepath.Dir(file), content, perm); err == nil {
			err = os.Rename(tmp, file)
		}
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}

func writeTemp(dir string, content []byte, perm fs.FileMode) (string, error) {
	f, err := os.CreateTemp(dir, ".tree-tmp-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close(), os.Chmod(f.Name(), perm)); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// writeIfChanged leaves a file that already has the content alone, with its
// modification time, and says whether it wrote.
func writeIfChanged(file string, content []byte, perm fs.FileMode, tmpDir string) (bool, error) {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	return true, writeAtomic(file, content, perm, tmpDir)
}

// linkAtomic puts a symbolic link in the place of whatever file is there.
func linkAtomic(target, file, tmpDir string) error {
	if err := failpoint("link " + file); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp := filepath.Join(tmpDir, fmt.Sprintf(".tree-link-%d", os.Getpid()))
	os.Remove(tmp)
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}

// removeFile removes a file and the directories that it leaves empty, up to
// but without top.
func removeFile(top, path string) error {
	file := filepath.Join(top, path)
	if err := failpoint("remove " + file); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		// Remove refuses a directory that is not empty: that ends the walk.
		if os.Remove(filepath.Join(top, dir)) != nil {
			break
		}
	}
	return nil
}

// content is a file as git sees it: absent, a symbolic link (data is its
// target), or regular.
type content struct {
	mode string
	data []byte
}

const (
	modeFile = "100644"
	modeExec = "100755"
	modeLink = "120000"
)

// readContent reads a file without following a link.
func readContent(file string) (content, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return content{}, nil
	}
	if err != nil {
		return content{}, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		return content{modeLink, []byte(target)}, err
	case info.Mode().IsRegular():
		data, err := os.ReadFile(file)
		return content{gitMode(info), data}, err
	}
	return content{}, fmt.Errorf("%s is neither a file nor a link: move it away", file)
}

func gitMode(info fs.FileInfo) string {
	if info.Mode()&0o100 != 0 {
		return modeExec
	}
	return modeFile
}

func permOf(mode string) fs.FileMode {
	if mode == modeExec {
		return 0o755
	}
	return 0o644
}

// entry returns what git would store for the content.
func (c content) entry() entry {
	if c.mode == "" {
		return entry{}
	}
	return entry{c.mode, blobID(c.data)}
}

// sum identifies mode and content in the state.
func (c content) sum() string { return c.mode + " " + blobID(c.data) }

// lock keeps two runs on one repository apart. The descriptor is passed on to
// child processes on purpose: when a run is killed, a git that it has started
// may live a little longer, and the next run has to wait for that one too.
func lock(file string, waiting func()) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	fd, err := syscall.Open(file, syscall.O_CREAT|syscall.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", file, err)
	}
	err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		waiting()
		err = syscall.Flock(fd, syscall.LOCK_EX)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("locking %s: %w", file, err)
	}
	return func() { syscall.Close(fd) }, nil
}
