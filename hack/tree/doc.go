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

// Command tree makes a Kubernetes tree of the base, the patches and our own
// files, and writes edits made in that tree back to the repository.
//
// # Model
//
// The repository holds our files, a patch for each upstream file that a person
// edited, and one patch for the upstream files that generators edit. go.mod pins
// the base. From these follows _output/kubernetes, a git repository of its own:
//
//	base  the modules that go.mod pins as one commit (tag base)
//	T     a git tree: base plus all patches, computed without touching a file
//	      (tag laid, once it is in the tree)
//	last  what the last run put into the tree: its T, and the blob ids of our
//	      files, and the same of runs since that were interrupted
//	      (.git/tree-state.json)
//
// One rule holds for each path, upstream's and ours (see decide). It compares
// last, what the repository wants now, and what the tree has: a file that is as
// a run laid it is replaced; any other file is an edit and left alone; if the
// repository wants something new there too, that is an error, which merge or the
// developer resolves.
//
// refresh first does the same, so that an old tree never reverts the repository.
// Then the difference between base and tree becomes patches, which are proved to
// make the very same tree, and new files move into the repository.
//
// Our Go files are symbolic links in the tree, so an edit there is an edit here.
// Our other files are copies, because go:embed refuses links, and so are all of
// them for generators (tree -copies). Links that are moved within the tree cannot
// be written back, and are refused.
//
// # Guarantees
//
//   - No edit is overwritten unless -discard asks for it, and refresh removes none
//     of our files from the repository unless git has its content.
//   - Nothing is written if anything is wrong; all that is wrong is reported.
//   - Content of an upstream file never enters the repository. A patch edits a file;
//     it cannot add, remove or rename one.
//   - An interrupted run loses nothing. The next run leads to what the repository
//     says then, and takes nothing that the interrupted run wrote for an edit.
//
// git -C _output/kubernetes diff laid shows the edits of upstream's files that are
// not refreshed, git restore --source laid PATH drops one.
package main
