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

package systemd

import "fmt"

// PreparingForShutdown reports whether a shutdown of the machine has begun, and not been canceled.
func (bus *DBusCon) PreparingForShutdown() (bool, error) {
	property, err := bus.SystemBus.Object(logindService, logindObject).GetProperty(logindInterface + ".PreparingForShutdown")
	if err != nil {
		return false, fmt.Errorf("reading PreparingForShutdown from logind: %w", err)
	}
	isPreparing, ok := property.Value().(bool)
	if !ok {
		return false, fmt.Errorf("PreparingForShutdown from logind is a %T, not a boolean", property.Value())
	}
	return isPreparing, nil
}
