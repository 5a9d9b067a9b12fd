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

package etcd3

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
)

// grant returns a lease for one object. Nothing is shared, so writers do not wait for one another: a lease takes etcd
// as long as a write.
func (l *leaseManager) grant(ctx context.Context, ttl int64) (clientv3.LeaseID, error) {
	granted, err := l.client.Grant(ctx, ttl)
	if err != nil {
		return 0, err
	}
	metrics.UpdateLeaseObjectCount(1)
	return granted.ID, nil
}
