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
// edited, and one patch for the upstream files that generators edit. go.mod
// pins the base. From these the tree in _output/kubernetes follows:
//
//	base     the modules that go.mod pins, laid out as a Kubernetes tree and
//	         committed to the tree's own git repository (refs/tags/base)
//	T        a git tree object: base plus all patches, computed in an index
//	         of its own without touching a file
//	laid     what the last run put into the tree: the id of its T, and the
//	         contents of our files (.git/tree-state.json)
//	worktree what is in the tree now
//
// tree goes from laid to T: it writes the files in which the two differ, and
// then records T as laid. A file of the worktree that is as laid, or as in
// base, may be overwritten; any other is an edit that has not been written
// back. Such an edit is left alone as long as its patch stays the same, and is
// an error when both have changed. merge resolves that.
//
// refresh goes the other way: what differs between base and worktree becomes
// patches, and files that upstream does not have move into the repository. It
// runs tree before, so that a change of the repository is never reverted by an
// old tree, and proves that the new patches make the very worktree again
// before it writes them.
//
// Our files are symbolic links in the tree, so an edit there is an edit here.
// Where links do not work (go:embed, generators that use git grep) they are
// copies, and the recorded contents tell which side has changed.
//
// # Rules
//
//   - Content of an upstream file never enters the repository: deletions and
//     renames are patches without it.
//   - Nothing is lost: no edit is overwritten, and none of our files is removed
//     from the repository unless git has its content.
//   - Nothing is written if anything is wrong; all that is wrong is reported.
//   - A run may be killed at any time. Files are replaced by renaming, trees
//     that a run begins to lay are recorded first, and what has been laid last.
//
// # Files
//
//	main.go       commands and their output
//	base.go       modules, and how they are laid
//	patches.go    reading patches, and applying them to the base
//	ours.go       our files: where they go, what to do about each
//	embed.go      which of them go:embed reads
//	workspace.go  the directories, and how a tree comes to be
//	tree.go       from the repository to the tree: the plan
//	apply.go      carrying it out
//	refresh.go    from the tree to the repository, with refresh_upstream.go for
//	              upstream's files and refresh_ours.go for ours
//	diff.go       from trees to patch files
//	generated.go  which upstream files generators write
//	merge.go      three-way merges after a change of the base
//	verify.go     checks
//	index.go      PATCHES.md
//	state.go      what is remembered between runs
//	git.go        calls of git
//	files.go      files, links and the lock
package main
