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

package system

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTutorialOutput(t *testing.T) {
	for _, test := range []struct {
		name, shown, printed string
		differs              bool
	}{
		{name: "nothing shown", printed: "anything\n"},
		{name: "the same", shown: "a (b) *\n", printed: "a (b) *\n"},
		{name: "another word", shown: "node drained\n", printed: "node cordoned\n", differs: true},
		{name: "another number", shown: "2 pods\n", printed: "3 pods\n", differs: true},
		{name: "another node", shown: "node-1\n", printed: "node-2\n", differs: true},
		{name: "a further line", shown: "a\n", printed: "a\nb\n", differs: true},
		{name: "one line fewer", shown: "a\nb\n", printed: "a\n", differs: true},
		{name: "the end of a watch", shown: "met\n", printed: `I1129 01:58:27.497765    6888 reflector.go:664] "Warning: watch ended with error" reflector="informerwatcher.go:162" err="an error on the server"` + "\nmet\n"},
		{name: "another log", shown: "met\n", printed: `E1129 01:58:27.497765    6888 memcache.go:265] "Unhandled Error"` + "\nmet\n", differs: true},
		{name: "times", shown: "17:55:54  for 12s\n", printed: "09:00:01  for 1m2s\n"},
		{name: "columns", shown: "NAME   AGE\nweb    3s\n", printed: "NAME  AGE\nweb   10m\n"},
		{name: "random names", shown: "web-86b5468886-9mkl5\n", printed: "web-5c5956868-gg95h\n"},
		{name: "the same pod twice", shown: "web-86b5468886-aaaaa\nweb-86b5468886-aaaaa\n", printed: "web-86b5468886-ccccc\nweb-86b5468886-ddddd\n", differs: true},
		{name: "two pods", shown: "web-86b5468886-aaaaa\nweb-86b5468886-bbbbb\n", printed: "web-86b5468886-ddddd\nweb-86b5468886-ccccc\n"},
		{name: "part of a line", shown: "completed: ...\n", printed: "completed: the nodes\n"},
		{name: "part of a line, further line", shown: "completed: ...\n", printed: "completed: the\nnodes\n", differs: true},
		{name: "lines", shown: "a\n...\nd\n", printed: "a\nb\nc\nd\n"},
		{name: "no lines", shown: "...\na\n...\n", printed: "a\n"},
		{name: "lines, another end", shown: "a\n...\nd\n", printed: "a\nb\n", differs: true},
	} {
		if diff := compareOutput(test.shown, test.printed); diff != "" != test.differs {
			t.Errorf("%s: differs must be %t, got %q", test.name, test.differs, diff)
		}
	}
}

func TestTutorialCommands(t *testing.T) {
	const text = "```console\n$ a\nb\n\nc\n$ d <<'END'\n$ e\nEND\n```\nprose\n```console\nf\n```\n"
	got, err := readCommands(text)
	want := []command{{line: 2, text: "a", shown: "b\n\nc\n"}, {line: 6, text: "d <<'END'\n$ e\nEND", shown: "f\n"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(command{})); diff != "" || err != nil {
		t.Errorf("error %v, commands (- want, + got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"```\nx\n```\n":        "line 1",
		"\n```console\nx\n```": "line 3",
	} {
		if _, err := readCommands(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}
