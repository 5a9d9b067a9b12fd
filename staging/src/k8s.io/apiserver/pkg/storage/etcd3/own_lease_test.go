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
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// lessor grants leases once so many are asked for at a time.
type lessor struct {
	clientv3.Lease
	together sync.WaitGroup
	granted  atomic.Int64
	err      error
}

func (l *lessor) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.together.Done()
	all := make(chan struct{})
	go func() { l.together.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(time.Minute):
		return nil, errors.New("no others have asked for a minute")
	}
	return &clientv3.LeaseGrantResponse{ID: clientv3.LeaseID(l.granted.Add(1)), TTL: ttl}, ctx.Err()
}

// Objects with leases of their own are written at the same time: with one lease after the other, each would wait for the
// next one.
func TestOwnLeases(t *testing.T) {
	const writers = 3
	l := &lessor{}
	l.together.Add(writers)
	manager := newDefaultLeaseManager(&clientv3.Client{Lease: l}, LeaseManagerConfig{ReuseDurationSeconds: 60, MaxObjectCount: 1})
	before := observedLeases(t)
	var leases sync.Map
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			id, err := manager.GetLease(t.Context(), 600)
			if _, shared := leases.LoadOrStore(id, true); shared || err != nil {
				t.Errorf("got the lease %d, shared: %t, %v", id, shared, err)
			}
		})
	}
	all.Wait()
	if got := observedLeases(t) - before; got != writers {
		t.Errorf("%d leases in the metrics, want %d", got, writers)
	}

	l.err = errors.New("no leader")
	if id, err := manager.GetLease(t.Context(), 600); id != 0 || !errors.Is(err, l.err) {
		t.Errorf("got the lease %d, %v", id, err)
	}
}

// observedLeases returns how many leases the metrics have the numbers of objects of.
func observedLeases(t *testing.T) uint64 {
	t.Helper()
	metrics.Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "etcd_lease_object_counts" {
			return family.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	return 0
}
