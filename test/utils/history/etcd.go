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

package history

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// resources are those that are followed, by the second part of their keys in etcd.
var resources = map[string]bool{
	"pods": true, "minions": true, "poddisruptionbudgets": true, "deployments": true, "replicasets": true, "statefulsets": true,
	"daemonsets": true, "evictionrequests": true, "nodemaintenances": true, "nodemaintenancebudgets": true,
}

// Follow calls a function with the changes of each revision, in order, from one on, until the context ends. It reads
// etcd itself, because the watch cache of an API server is one of the things to be checked. prefix is that of all keys.
func Follow(ctx context.Context, client *clientv3.Client, prefix string, from int64, handle func([]Change)) error {
	watch := client.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(from))
	for response := range watch {
		if err := response.Err(); err != nil {
			return fmt.Errorf("watching etcd: %w", err)
		}
		now := time.Now()
		var changes []Change
		for i, event := range response.Events {
			if i > 0 && event.Kv.ModRevision != response.Events[i-1].Kv.ModRevision && len(changes) > 0 {
				handle(changes)
				changes = nil
			}
			change, err := newChange(event, prefix, now)
			if err != nil {
				return fmt.Errorf("decoding %s of revision %d: %w", event.Kv.Key, event.Kv.ModRevision, err)
			}
			if change != nil {
				changes = append(changes, *change)
			}
		}
		if len(changes) > 0 {
			handle(changes)
		}
	}
	if ctx.Err() == nil {
		return fmt.Errorf("watching etcd: the watch has ended")
	}
	return nil
}

// newChange returns nil for what is not followed.
func newChange(event *clientv3.Event, prefix string, now time.Time) (*Change, error) {
	resource, _, _ := bytes.Cut(bytes.TrimPrefix(bytes.TrimPrefix(event.Kv.Key, []byte(prefix)), []byte("/")), []byte("/"))
	if !resources[string(resource)] {
		return nil, nil
	}
	c := &Change{Revision: event.Kv.ModRevision, Time: now}
	var err error
	if event.PrevKv != nil {
		if c.Key, c.Before, err = decode(event.PrevKv); err != nil {
			return nil, err
		}
	}
	if event.Type == clientv3.EventTypePut {
		c.Key, c.After, err = decode(event.Kv)
	}
	return c, err
}

func decode(kv *mvccpb.KeyValue) (Key, Object, error) {
	decoded, kind, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
	if err != nil {
		return Key{}, nil, err
	}
	object, ok := decoded.(Object)
	if !ok {
		return Key{}, nil, fmt.Errorf("%T is no object", decoded)
	}
	return Key{kind.Kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}, object, nil
}
