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

// Package layer makes layers of images from files of this machine. The same files give the same
// bytes, whenever, where and by whomever they are packed.
package layer

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// File is a file, directory or symbolic link of a layer. The directories that it is in need not
// be named.
type File struct {
	// Path is absolute.
	Path string
	// Mode has the permissions, and the bits of setuid, setgid and sticky as in tar.
	Mode int64
	// Data is the content of a file, unless Source names a file that has it.
	Data   []byte
	Source string
	// Target makes it a symbolic link.
	Target string
	// Directory makes it a directory.
	Directory bool
	// BindsLowPorts gives a program the capability to listen on ports below 1024 also where it
	// does not run as root: cap_net_bind_service=+ep.
	BindsLowPorts bool
}

// Base are the files that programs expect in an image and that no program brings: accounts, the
// order of name lookups, directories for temporary files.
func Base() []File {
	return []File{
		{Path: "/tmp", Directory: true, Mode: 0o1777},
		{Path: "/var/tmp", Directory: true, Mode: 0o1777},
		{Path: "/etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/:/sbin/nologin\n" +
			"nobody:x:65534:65534:nobody:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{Path: "/etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n")},
		{Path: "/etc/nsswitch.conf", Mode: 0o644, Data: []byte("hosts: files dns\n")},
	}
}

// Roots is the file with the certificate authorities that Mozilla trusts, in the release of them
// that go.mod names. Those with a constraint are left out, because the file could not state it.
func Roots() File {
	var data bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		// A write into memory does not fail.
		_ = pem.Encode(&data, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	return File{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: data.Bytes()}
}

// New returns a layer with files.
func New(files ...File) (v1.Layer, error) {
	var buffer bytes.Buffer
	w := &writer{Writer: tar.NewWriter(&buffer), directories: map[string]bool{".": true}}
	for _, file := range files {
		if err := w.add(file); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// writer writes files and the directories that they are in.
type writer struct {
	*tar.Writer
	directories map[string]bool
}

func (w *writer) add(file File) error {
	if !path.IsAbs(file.Path) {
		return errors.New("the path " + file.Path + " is not absolute")
	}
	name := strings.TrimPrefix(path.Clean(file.Path), "/")
	if parent := path.Dir(name); !w.directories[parent] {
		if err := w.add(File{Path: "/" + parent, Directory: true, Mode: 0o755}); err != nil {
			return err
		}
	}
	header := &tar.Header{Name: name, Mode: file.Mode, Format: tar.FormatPAX}
	switch {
	case file.Directory:
		w.directories[name] = true
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		return w.WriteHeader(header)
	case file.Target != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, file.Target, 0o777
		return w.WriteHeader(header)
	}
	data := file.Data
	if file.Source != "" {
		var err error
		if data, err = os.ReadFile(file.Source); err != nil {
			return err
		}
	}
	header.Typeflag, header.Size = tar.TypeReg, int64(len(data))
	if file.BindsLowPorts {
		header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": string(netBindService())}
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// netBindService is the extended attribute security.capability of a file, as capabilities(7)
// describes it, in its second version: version and flags, then the lower 32 capabilities,
// permitted and inheritable, then the upper 32.
func netBindService() []byte {
	const (
		version2        = 0x02000000
		effective       = 1
		netBindServices = 1 << 10
	)
	var value []byte
	for _, word := range []uint32{version2 | effective, netBindServices, 0, 0, 0} {
		value = binary.LittleEndian.AppendUint32(value, word)
	}
	return value
}
