package main

import (
	"context"
	"fmt"
	"time"
)

// What the demo adds to the example for its staged rollout: the files in the directory staged.
const (
	stagedPlacement = "announcement"
	stagedFile      = "apps/announcement/config.yaml"
	stagedText      = "Welcome"
	canaryStage     = "canary"
	canary          = "member-3"
)

// approveCanary approves the canary of the first staged rollout as soon as it is updated, as a user would, and waits until
// the other clusters follow. In a repository of an earlier demo it leaves what it finds.
func (d *demo) approveCanary(ctx context.Context) (string, error) {
	if !d.repository.created {
		return "as it was left", nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for {
		_, err := d.gitfleet(ctx, "approve", "crp/"+stagedPlacement, "--stage", canaryStage, "--reason", "the demo goes on")
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("stage %s cannot be approved: %w", canaryStage, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	_, err := d.await(ctx, "Applied")
	return canary + " first, the others after an approval", err
}
