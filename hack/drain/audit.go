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

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// probe is how drain asks what a server serves.
const probe = "get /apis/coordination.k8s.io/v1alpha1"

// readRequests returns the requests in an audit log by the user who was impersonated,
// each as "verb URI code body" and sorted.
func readRequests(file string) (map[string][]string, error) {
	log, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	requests := map[string][]string{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<24) // A line holds a whole object.
	for lines.Scan() {
		event := &auditv1.Event{}
		if err := json.Unmarshal(lines.Bytes(), event); err != nil {
			return nil, fmt.Errorf("reading audit log %s: %w", file, err)
		}
		if event.ImpersonatedUser == nil || event.ResponseStatus == nil {
			continue
		}
		request := fmt.Sprintf("%s %s %d", event.Verb, event.RequestURI, event.ResponseStatus.Code)
		if event.RequestObject != nil {
			request += " " + string(event.RequestObject.Raw)
		}
		user := event.ImpersonatedUser.Username
		requests[user] = append(requests[user], request)
	}
	for _, list := range requests {
		slices.Sort(list)
	}
	return requests, lines.Err()
}

// withoutProbe takes out one probe, and tells whether there was one.
func withoutProbe(requests []string) ([]string, bool) {
	i := slices.IndexFunc(requests, isProbe)
	if i < 0 {
		return requests, false
	}
	return slices.Delete(slices.Clone(requests), i, i+1), true
}

// isProbe does not look at the time that the client allows for the answer.
func isProbe(request string) bool {
	fields := strings.Fields(request)
	uri, _, _ := strings.Cut(fields[1], "?")
	return fields[0]+" "+uri == probe && fields[2] == strconv.Itoa(http.StatusNotFound)
}

// writes returns the requests that change something, without their bodies.
func writes(requests []string) []string {
	var changing []string
	for _, request := range requests {
		fields := strings.SplitN(request, " ", 4)
		switch fields[0] {
		case "get", "list", "watch":
		default:
			uri, _, _ := strings.Cut(fields[1], "?")
			changing = append(changing, fields[0]+" "+uri)
		}
	}
	return changing
}
