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
	"flag"
	"fmt"
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

	"graceful-kubernetes/hack/modules/images/layer"
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
	files, err := parseContents(contents)
	if err != nil {
		return err
	}
	packed, err := layer.New(append(layer.Base(), files...)...)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, packed)
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
		names[parsed] = &named{image}
	}
	// Under another name first: an interrupted run leaves no half of an image.
	if err := tarball.MultiWriteToFile(output+".part", names); err != nil {
		return err
	}
	return os.Rename(output+".part", output)
}

// named is an image with one name. The library writes images in the order of their names, but the
// names of one image in any.
type named struct{ v1.Image }

// parseContents returns the files that arguments name.
func parseContents(arguments []string) ([]layer.File, error) {
	var files []layer.File
	for _, argument := range arguments {
		from, to, found := strings.Cut(argument, "=")
		if !found || !path.IsAbs(to) {
			return nil, fmt.Errorf("%q is not of the form file=/path", argument)
		}
		file := layer.File{Path: to, Mode: 0o755, Source: from}
		if target, isLink := strings.CutPrefix(from, "@"); isLink {
			file = layer.File{Path: to, Target: target}
		}
		files = append(files, file)
	}
	return files, nil
}
