package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// stagedSync applies the objects on all members at the same time with ApplyAllStaged of Flux's
// ResourceManager, which applies an object if a dry run says that it differs.
func stagedSync(ctx context.Context, members []fleet.Member) (time.Duration, error) {
	namespace := fresh("staged")
	list := marked(mix(namespace, syncObjects), namespace)
	managers := make([]*ssa.ResourceManager, len(members))
	for i, m := range members {
		cfg := rest.CopyConfig(m.Config)
		cfg.QPS = -1
		c, err := client.New(cfg, client.Options{Scheme: runtime.NewScheme(), Log: logr.FromSlogHandler(slog.DiscardHandler)})
		if err != nil {
			return 0, err
		}
		managers[i] = ssa.NewResourceManager(c, polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{}), ssa.Owner{Field: "staged", Group: "example.com"})
		managers[i].SetConcurrency(bareConcurrency)
	}
	goruntime.GC()
	began := time.Now()
	err := each(managers, func(manager *ssa.ResourceManager) error {
		objects := make([]*unstructured.Unstructured, len(list))
		for i, o := range list {
			objects[i] = &unstructured.Unstructured{}
			if err := objects[i].UnmarshalJSON(o.json); err != nil {
				return fmt.Errorf("%s %s: %w", o.kind, o.name, err)
			}
		}
		_, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
		return err
	})
	took := time.Since(began)
	return took, errors.Join(err, clearAll(ctx, members, namespace))
}
