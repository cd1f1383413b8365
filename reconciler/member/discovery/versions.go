package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// versionsOf returns the versions of a group that the server serves, the preferred one first; none
// if it does not have the group. The core group has one version.
func versionsOf(ctx context.Context, client rest.Interface, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	raw, err := connection.Answer(client.Get().AbsPath("apis", group).Do(ctx))
	if connection.NotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found metav1.APIGroup
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, connection.ErrNotObject
	}
	var versions []string
	for _, v := range found.Versions {
		versions = append(versions, v.Version)
	}
	return versions, nil
}

// unavailable adds to the error of the discovery of a group version what its APIService says, if an
// aggregated API server should have answered.
func unavailable(ctx context.Context, client discovery.DiscoveryInterface, gv schema.GroupVersion, err error) error {
	if !apierrors.IsServiceUnavailable(err) {
		return err
	}
	name := strings.Trim(gv.Version+"."+gv.Group, ".")
	raw, read := connection.Answer(client.RESTClient().Get().AbsPath("apis/apiregistration.k8s.io/v1/apiservices", name).Do(ctx))
	var service struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if read != nil || json.Unmarshal(raw, &service) != nil {
		return fmt.Errorf("the cluster cannot serve %s now: %w", gv, err)
	}
	for _, c := range service.Status.Conditions {
		if c.Type == "Available" && c.Status != metav1.ConditionTrue {
			return fmt.Errorf("the cluster cannot serve %s now: its APIService %s is not available: %s: %s: %w", gv, name, c.Reason, connection.CutTo(c.Message, 400), err)
		}
	}
	return fmt.Errorf("the cluster cannot serve %s now: %w", gv, err)
}
