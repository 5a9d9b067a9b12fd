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

// Mkimage makes an image of static programs, without a daemon, a registry or a base image:
//
//	mkimage -o pause.tar -t localhost/pause:1 -command "/workload pause" workload=/workload
//
// An image can have several names, separated by commas, and an entrypoint: a pod that gives
// arguments only passes them to that.
//
// An argument is a file and its path in the image; "@target=/link" makes a symbolic link. The
// result is what "docker save" writes, and "ctr images import" reads. The same files give the same
// image.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	output := flag.String("o", "image.tar", "file to write")
	tags := flag.String("t", "", "names of the image, separated by commas")
	entrypoint := flag.String("entrypoint", "", "what a container runs with its arguments")
	command := flag.String("command", "", "what a container runs unless its pod says otherwise")
	flag.Parse()
	if err := run(*output, *tags, strings.Fields(*entrypoint), strings.Fields(*command), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

func run(output, tags string, entrypoint, command, contents []string) error {
	layer, err := newLayer(contents)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config.Env = []string{"PATH=/bin:/"}
	config.Config.Entrypoint, config.Config.Cmd = entrypoint, command
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	names := map[name.Tag]v1.Image{}
	for _, tag := range strings.Split(tags, ",") {
		parsed, err := name.NewTag(tag)
		if err != nil {
			return err
		}
		names[parsed] = image
	}
	// Under another name first: an interrupted run leaves no half of an image.
	if err := tarball.MultiWriteToFile(output+".part", names); err != nil {
		return err
	}
	return os.Rename(output+".part", output)
}

// accounts are what programs look up in images.
var accounts = map[string]string{
	"etc/passwd":        "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
	"etc/group":         "root:x:0:\nnobody:x:65534:\n",
	"etc/nsswitch.conf": "hosts: files dns\n",
}

func newLayer(contents []string) (v1.Layer, error) {
	var buffer bytes.Buffer
	l := &layerWriter{Writer: tar.NewWriter(&buffer), directories: map[string]bool{".": true}}
	for _, directory := range []string{"tmp", "var/tmp"} { // Programs expect them.
		l.directory(directory, 0o1777)
	}
	for _, file := range []string{"etc/passwd", "etc/group", "etc/nsswitch.conf"} {
		l.file(file, 0o644, []byte(accounts[file]))
	}
	for _, content := range contents {
		from, to, found := strings.Cut(content, "=")
		if !found || !path.IsAbs(to) {
			return nil, fmt.Errorf("%q is not of the form file=/path", content)
		}
		to = strings.TrimPrefix(path.Clean(to), "/")
		if target, isLink := strings.CutPrefix(from, "@"); isLink {
			l.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: to, Linkname: target, Mode: 0o777})
			continue
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		l.file(to, 0o755, data)
	}
	if err := errors.Join(l.err, l.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
}

// layerWriter writes files and the directories that they are in. It keeps the first error.
type layerWriter struct {
	*tar.Writer
	directories map[string]bool
	err         error
}

func (l *layerWriter) header(header *tar.Header) {
	if parent := path.Dir(path.Clean(header.Name)); !l.directories[parent] {
		l.directory(parent, 0o755)
	}
	header.Format = tar.FormatPAX
	l.err = errors.Join(l.err, l.WriteHeader(header))
}

func (l *layerWriter) directory(name string, mode int64) {
	l.directories[name] = true
	l.header(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
}

func (l *layerWriter) file(name string, mode int64, data []byte) {
	l.header(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))})
	_, err := l.Write(data)
	l.err = errors.Join(l.err, err)
}
