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

// Images makes the images of a release, without a daemon, a registry or a base image, and pushes
// them. It also writes the SBOMs of programs.
//
//	images build -programs _output/release/bin -o _output/release/images -version v1.37.2+graceful.1 ...
//	images sbom -programs _output/release/bin -o _output/release/sbom -version v1.37.2+graceful.1 ...
//	images push -layout _output/release/images/oci -registry registry.example.com/kubernetes
//
// What build writes depends on the programs and the flags alone: who builds a release again gets
// the same digests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const usage = `usage: images build -programs DIRECTORY -o DIRECTORY -version VERSION -created TIME [FLAG...]
       images sbom -programs DIRECTORY -o DIRECTORY -version VERSION -created TIME [FLAG...]
       images check with the flags of these, which it checks
       images push -layout DIRECTORY -registry REGISTRY [-overwrite] [-without-sboms]

"images build -help" (also for sbom and check) and "images push -help" explain the flags.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// The second Ctrl-C ends it at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no command\n" + usage)
	}
	switch command, args := args[0], args[1:]; command {
	case "build", "check", "sbom":
		r, err := parseBuild(args)
		switch {
		case err != nil || command == "check":
			return err
		case command == "sbom":
			return r.writeProgramSBOMs()
		}
		return r.build(ctx, out)
	case "push":
		p, err := parsePush(args)
		if err != nil {
			return err
		}
		return p.push(ctx, out)
	default:
		return fmt.Errorf("unknown command %q\n%s", command, usage)
	}
}

// parse parses flags. All of those that are named must have a value, and there is nothing else.
func parse(flags *flag.FlagSet, args []string, required ...string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for _, name := range required {
		if flags.Lookup(name).Value.String() == "" {
			return fmt.Errorf("the flag -%s is missing: %s", name, flags.Lookup(name).Usage)
		}
	}
	return nil
}

func parseBuild(args []string) (*release, error) {
	flags := flag.NewFlagSet("images build", flag.ContinueOnError)
	r := &release{}
	flags.StringVar(&r.programs, "programs", "", "directory with a directory of programs for each platform, such as linux-amd64")
	flags.StringVar(&r.output, "o", "", "directory to write, replaced if it is there")
	flags.StringVar(&r.repository, "repository", "localhost", "what names of images begin with in the layout and in the tarballs")
	flags.StringVar(&r.version, "version", "", "version of the programs, such as v1.37.2+graceful.1")
	flags.StringVar(&r.revision, "revision", "", "commit of the sources")
	flags.StringVar(&r.source, "source", "", "URL of the repository of the sources")
	created := flags.String("created", "", "time of the images in RFC 3339, such as that of the commit")
	only := flags.String("only", "", "programs to make images of, separated by commas, by default all")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms, separated by commas")
	if err := parse(flags, args, "programs", "o", "version", "created"); err != nil {
		return nil, err
	}
	var err error
	if r.created, err = time.Parse(time.RFC3339, *created); err != nil {
		return nil, fmt.Errorf("-created %q is not a time such as 2026-11-23T00:00:00Z", *created)
	}
	if r.selected, err = selectPrograms(*only); err != nil {
		return nil, err
	}
	for _, p := range strings.Split(*platforms, ",") {
		architecture, found := strings.CutPrefix(p, "linux/")
		if !found || !architectures.MatchString(architecture) {
			return nil, fmt.Errorf("-platforms: %q is not of the form linux/<architecture>, such as linux/arm64", p)
		}
		if slices.Contains(r.architectures, architecture) {
			return nil, fmt.Errorf("-platforms names %s twice", p)
		}
		r.architectures = append(r.architectures, architecture)
	}
	r.repository, r.output = strings.TrimSuffix(r.repository, "/"), filepath.Clean(r.output)
	return r, r.check()
}

func parsePush(args []string) (*push, error) {
	flags := flag.NewFlagSet("images push", flag.ContinueOnError)
	p := &push{}
	flags.StringVar(&p.layout, "layout", "", "OCI layout that images build has written")
	flags.StringVar(&p.registry, "registry", "", "registry and path to push to, such as registry.example.com/kubernetes")
	flags.BoolVar(&p.overwrite, "overwrite", false, "move tags that the registry has for other images")
	flags.BoolVar(&p.withoutSBOMs, "without-sboms", false, "push no SBOMs: some registries take only images")
	return p, parse(flags, args, "layout", "registry")
}
