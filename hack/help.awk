# Copyright The Kubernetes Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Prints the table of "make help": sections begin with ##@, and what follows ## is about the target before it.
BEGIN { FS = ":.*## "; width = 119; indent = 32 }
/^##@/ { printf "\n%s\n", substr($0, 5) }
/^[a-z0-9-]+:.*## / {
  printf "  make %-25s", $1
  column = indent
  n = split($2, words, " ")
  for (i = 1; i <= n; i++) {
    if (column + 1 + length(words[i]) > width) {
      printf "\n%*s", indent, ""
      column = indent
    }
    printf " %s", words[i]
    column += 1 + length(words[i])
  }
  print ""
}
