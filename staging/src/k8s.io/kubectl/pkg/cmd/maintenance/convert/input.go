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

package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	cliresource "k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"
)

// maxInputSize is the size in bytes of the largest file that is read. A list of all pods of a large
// cluster fits.
const maxInputSize = 64 << 20

// stdin is the file name for standard input.
const stdin = "-"

// input is a file to convert.
type input struct {
	name string
	data []byte
}

// isScript reports whether the file looks like one with commands, and not objects.
func (in *input) isScript() bool {
	return filepath.Ext(in.name) == ".sh" || bytes.HasPrefix(in.data, []byte("#!"))
}

// readInputs reads files, the files in directories, and standard input, without a server.
func readInputs(options cliresource.FilenameOptions, stdinReader io.Reader) ([]*input, error) {
	var inputs []*input
	var errs []error
	readStdin := false
	for _, name := range options.Filenames {
		switch {
		case name != stdin:
		case readStdin:
			errs = append(errs, errors.New("--filename=-: standard input can be read only once"))
			continue
		default:
			readStdin = true
		}
		files, err := filesNamed(name, options.Recursive)
		if err != nil {
			errs = append(errs, fmt.Errorf("--filename=%s: %w", name, err))
			continue
		}
		for _, file := range files {
			in, err := readInput(file, stdinReader)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", file, err))
				continue
			}
			inputs = append(inputs, in)
		}
	}
	return inputs, errors.Join(errs...)
}

// filesNamed returns the files that an argument of --filename stands for: as in other commands of
// kubectl, it may be a directory or a pattern.
func filesNamed(name string, recursive bool) ([]string, error) {
	if name == stdin {
		return []string{stdin}, nil
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return nil, errors.New("convert reads no URLs: download the file first")
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if matches, matchErr := filepath.Glob(name); matchErr == nil && len(matches) > 0 {
			return matches, nil
		}
	}
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	files, err := filesIn(name, recursive)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the directory has no file that ends in %s", strings.Join(cliresource.FileExtensions, ", "))
	}
	return files, err
}

func filesIn(directory string, recursive bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != directory && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains(cliresource.FileExtensions, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

func readInput(name string, stdinReader io.Reader) (*input, error) {
	reader := stdinReader
	if name == stdin {
		name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		reader = file
	}
	data, err := io.ReadAll(io.LimitReader(reader, maxInputSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxInputSize {
		return nil, fmt.Errorf("is larger than %d MiB: split it", maxInputSize>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return nil, fmt.Errorf("is no text: line %d has a NUL byte", lineAt(data, at))
	}
	if !utf8.Valid(data) {
		return nil, errors.New("is no text in UTF-8: save it in that encoding")
	}
	return &input{name: name, data: data}, nil
}

func lineAt(data []byte, offset int) int { return bytes.Count(data[:offset], []byte("\n")) + 1 }

// document is one object of a file, before it is known what it is.
type document struct {
	number int
	object map[string]any
}

// documents parses the YAML or JSON documents of a file. Empty ones are not counted.
func (in *input) documents() ([]document, error) {
	var documents []document
	var errs []error
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(in.data)))
	for number := 0; ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, errors.Join(errs...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.name, err)
		}
		asJSON, err := yaml.YAMLToJSONStrict(text)
		if err == nil && string(asJSON) == "null" {
			continue
		}
		number++
		var value any
		if err == nil {
			err = utiljson.Unmarshal(asJSON, &value)
		}
		object, isObject := value.(map[string]any)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s, document %d: %w", in.name, number, err))
		case !isObject:
			errs = append(errs, fmt.Errorf("%s, document %d: is no object", in.name, number))
		default:
			documents = append(documents, document{number: number, object: object})
		}
	}
}
