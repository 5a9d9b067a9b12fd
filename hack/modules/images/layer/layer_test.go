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

package layer

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// entry is what a layer has of a file.
type entry struct {
	kind         byte
	mode         int64
	content      string
	capabilities int
}

func read(t *testing.T, layer v1.Layer) map[string]entry {
	t.Helper()
	uncompressed, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer uncompressed.Close()
	entries := map[string]entry{}
	reader := tar.NewReader(uncompressed)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, found := entries[header.Name]; found {
			t.Errorf("%s is there twice", header.Name)
		}
		if header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() > 0 {
			t.Errorf("%s belongs to %d:%d and is of %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		entries[header.Name] = entry{header.Typeflag, header.Mode, string(content) + header.Linkname, len(header.PAXRecords["SCHILY.xattr.security.capability"])}
	}
}

func TestNew(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	layer, err := New(append(Base(),
		File{Path: "/usr/local/bin/program", Mode: 0o755, Source: source, BindsLowPorts: true},
		File{Path: "/usr/local/bin/../lib/data", Mode: 0o640, Data: []byte("data")},
		File{Path: "/bin/sh", Target: "/usr/local/bin/program"})...)
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, layer)
	for name, want := range map[string]entry{
		"tmp/":                  {tar.TypeDir, 0o1777, "", 0},
		"var/":                  {tar.TypeDir, 0o755, "", 0},
		"var/tmp/":              {tar.TypeDir, 0o1777, "", 0},
		"etc/":                  {tar.TypeDir, 0o755, "", 0},
		"etc/passwd":            {tar.TypeReg, 0o644, "root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n", 0},
		"etc/group":             {tar.TypeReg, 0o644, "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n", 0},
		"etc/nsswitch.conf":     {tar.TypeReg, 0o644, "hosts: files dns\n", 0},
		"usr/":                  {tar.TypeDir, 0o755, "", 0},
		"usr/local/":            {tar.TypeDir, 0o755, "", 0},
		"usr/local/bin/":        {tar.TypeDir, 0o755, "", 0},
		"usr/local/bin/program": {tar.TypeReg, 0o755, "of a file", 20},
		"usr/local/lib/":        {tar.TypeDir, 0o755, "", 0},
		"usr/local/lib/data":    {tar.TypeReg, 0o640, "data", 0},
		"bin/":                  {tar.TypeDir, 0o755, "", 0},
		"bin/sh":                {tar.TypeSymlink, 0o777, "/usr/local/bin/program", 0},
	} {
		if got[name] != want {
			t.Errorf("%s is %+v, want %+v", name, got[name], want)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is there, too", name)
	}
}

func TestNewFails(t *testing.T) {
	for want, file := range map[string]File{
		"the path bin/sh is not absolute": {Path: "bin/sh"},
		"no such file":                    {Path: "/bin/sh", Source: filepath.Join(t.TempDir(), "missing")},
	} {
		if _, err := New(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Authorities that Mozilla trusts only for some names, or up to a day, are none that a file could
// name.
func TestRoots(t *testing.T) {
	constrained, trusted := 0, 0
	roots := Roots()
	for root := range bundle.Roots() {
		found := bytes.Contains(roots.Data, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		if root.Constraint != nil {
			constrained++
		} else {
			trusted++
		}
		if found != (root.Constraint == nil) {
			t.Errorf("an authority is there: %t, constrained: %t", found, root.Constraint != nil)
		}
	}
	if trusted < 50 || strings.Count(string(roots.Data), "BEGIN CERTIFICATE") != trusted {
		t.Errorf("%d authorities, and %d with a constraint", trusted, constrained)
	}
	t.Logf("%d authorities, and %d with a constraint", trusted, constrained)
	if roots.Path != "/etc/ssl/certs/ca-certificates.crt" || roots.Mode != 0o644 {
		t.Errorf("they are in %s, mode %o", roots.Path, roots.Mode)
	}
}
