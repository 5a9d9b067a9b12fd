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

package logind

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
)

// defaultInhibitDelay is that of systemd.
const defaultInhibitDelay = 5 * time.Second

// Config returns the content of a logind.conf with a delay.
func Config(inhibitDelay time.Duration) string {
	return fmt.Sprintf("[Login]\nInhibitDelayMaxSec=%v\n", inhibitDelay.Seconds())
}

// readInhibitDelay returns for how long locks may delay a shutdown: from logind.conf, or from the
// last file in logind.conf.d that has it, where kubelets write one. It must be a number of seconds.
func readInhibitDelay(directory string) (time.Duration, error) {
	paths, err := filepath.Glob(filepath.Join(directory, "logind.conf.d", "*.conf"))
	if err != nil {
		return 0, fmt.Errorf("find the configuration: %w", err)
	}
	delay := defaultInhibitDelay
	for _, path := range slices.Concat([]string{filepath.Join(directory, "logind.conf")}, paths) {
		options, err := readOptions(path)
		if err != nil {
			return 0, err
		}
		for _, option := range options {
			if option.Section != "Login" || option.Name != "InhibitDelayMaxSec" {
				continue
			}
			seconds, err := strconv.ParseFloat(option.Value, 64)
			if err != nil {
				return 0, fmt.Errorf("read InhibitDelayMaxSec in %s: %w", path, err)
			}
			delay = time.Duration(seconds * float64(time.Second))
		}
	}
	return delay, nil
}

// readOptions returns the options in a file, none if there is no such file.
func readOptions(path string) ([]*unit.UnitOption, error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the configuration: %w", err)
	}
	defer file.Close()
	options, err := unit.DeserializeOptions(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return options, nil
}
