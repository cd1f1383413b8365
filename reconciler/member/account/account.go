// Package account creates and removes the service account with which gitfleet manages a member
// cluster.
//
// Apply can be repeated: it updates the objects on the cluster and keeps the token.
package account

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
)

const (
	// DefaultName is the default name of an account.
	DefaultName = "gitfleet"
	// managedBy is the label of all objects of an account.
	managedBy = "app.kubernetes.io/managed-by"
	// memberAnnotation is the member that the account is for, and fleetAnnotation its fleet.
	memberAnnotation = "gitfleet.dev/member"
	fleetAnnotation  = "gitfleet.dev/fleet"
	// fieldManager owns the fields that Apply sets. It is also the value of managedBy.
	fieldManager = "gitfleet-member"
)

// An Account is a service account in the namespace of the inventories, with its permissions.
type Account struct {
	// Name is the name of the service account, its roles and their bindings.
	Name string
	// Member is the name of the MemberCluster; empty if the account is not for a certain one.
	Member string
	// Fleet is the name of the fleet; empty if it is not known.
	Fleet string
	Roles rbac.Roles
}

// tokenName is the name of the Secret with the token of an account.
func tokenName(account string) string { return account + "-token" }

// A manifest is an object of an account with its resource.
type manifest struct {
	resource schema.GroupVersionResource
	object   metav1.Object
}

var (
	namespaces      = corev1.SchemeGroupVersion.WithResource("namespaces")
	serviceAccounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	secrets         = corev1.SchemeGroupVersion.WithResource("secrets")
	clusterRoles    = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	clusterBindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	roles           = rbacv1.SchemeGroupVersion.WithResource("roles")
	bindings        = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

func (a Account) meta(namespace string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: a.Name, Namespace: namespace, Labels: map[string]string{managedBy: fieldManager}, Annotations: map[string]string{}}
	if a.Member != "" {
		m.Annotations[memberAnnotation] = a.Member
	}
	if a.Fleet != "" {
		m.Annotations[fleetAnnotation] = a.Fleet
	}
	return m
}

func (a Account) manifests() []manifest {
	core := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	access := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: a.Name, Namespace: api.Namespace}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: a.Name}
	}
	return []manifest{
		{namespaces, &corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: api.Namespace}}},
		{serviceAccounts, &corev1.ServiceAccount{TypeMeta: core("ServiceAccount"), ObjectMeta: a.meta(api.Namespace)}},
		{clusterRoles, &rbacv1.ClusterRole{TypeMeta: access("ClusterRole"), ObjectMeta: a.meta(""), Rules: a.Roles.Cluster}},
		{clusterBindings, &rbacv1.ClusterRoleBinding{TypeMeta: access("ClusterRoleBinding"), ObjectMeta: a.meta(""), Subjects: subjects, RoleRef: ref("ClusterRole")}},
		{roles, &rbacv1.Role{TypeMeta: access("Role"), ObjectMeta: a.meta(api.Namespace), Rules: a.Roles.Inventories}},
		{bindings, &rbacv1.RoleBinding{TypeMeta: access("RoleBinding"), ObjectMeta: a.meta(api.Namespace), Subjects: subjects, RoleRef: ref("Role")}},
	}
}

// Manifests returns the objects of the account, in the order in which they are applied. The
// Secret with the token is not one of them.
func (a Account) Manifests() []any {
	var all []any
	for _, m := range a.manifests() {
		all = append(all, m.object)
	}
	return all
}

// An OwnedError says that an account belongs to another member or another fleet, or to
// somebody else if both are empty.
type OwnedError struct{ Account, Member, Fleet string }

func (e *OwnedError) Error() string {
	switch {
	case e.Member == "" && e.Fleet == "":
		return fmt.Sprintf("the cluster has a ClusterRole %s that gitfleet did not make", e.Account)
	case e.Fleet != "":
		return fmt.Sprintf("the account %s belongs to the fleet %s", e.Account, e.Fleet)
	}
	return fmt.Sprintf("the account %s belongs to the member %s", e.Account, e.Member)
}

// A client accesses the objects of accounts.
type client struct{ dynamic.Interface }

func newClient(cfg *rest.Config) (*client, error) {
	c, err := dynamic.NewForConfig(cfg)
	return &client{c}, err
}

func (c *client) in(r schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.Resource(r)
	}
	return c.Resource(r).Namespace(namespace)
}

func (c *client) apply(ctx context.Context, m manifest) error {
	body, err := json.Marshal(m.object)
	if err != nil {
		return err
	}
	force := true
	_, err = c.in(m.resource, m.object.GetNamespace()).Patch(ctx, m.object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", m.resource.Resource, m.object.GetName(), err)
	}
	return nil
}

// owned returns an *OwnedError if the account belongs to another member or fleet. An account
// without a fleet belongs to everybody who names none.
func (c *client) owned(ctx context.Context, a Account) error {
	role, err := c.Resource(clusterRoles).Get(ctx, a.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read clusterroles %s: %w", a.Name, err)
	}
	member, fleet := role.GetAnnotations()[memberAnnotation], role.GetAnnotations()[fleetAnnotation]
	switch {
	case role.GetLabels()[managedBy] != fieldManager:
		return &OwnedError{Account: a.Name}
	case fleet != "" && fleet != a.Fleet:
		return &OwnedError{Account: a.Name, Fleet: fleet}
	case member != "" && member != a.Member:
		return &OwnedError{Account: a.Name, Member: member}
	}
	return nil
}

// Apply creates or updates the account on a cluster, and returns its token. The token is stored
// in a Secret and does not expire; it stays the same while the Secret exists. The error is an
// *OwnedError if the account belongs to another member or fleet.
func (a Account) Apply(ctx context.Context, cfg *rest.Config) (token string, err error) {
	c, err := newClient(cfg)
	if err != nil {
		return "", err
	}
	if err := c.owned(ctx, a); err != nil {
		return "", err
	}
	meta := a.meta(api.Namespace)
	meta.Name = tokenName(a.Name)
	meta.Annotations[corev1.ServiceAccountNameKey] = a.Name
	for _, m := range append(a.manifests(), manifest{secrets, &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Type: corev1.SecretTypeServiceAccountToken,
	}}) {
		if err := c.apply(ctx, m); err != nil {
			return "", err
		}
	}
	return c.token(ctx, meta.Name)
}

// tokenWithin is how long a cluster may take to write a token into its Secret.
const tokenWithin = 30 * time.Second

// token waits until the cluster has written the token into its Secret.
func (c *client) token(ctx context.Context, secret string) (token string, err error) {
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, tokenWithin, true, func(ctx context.Context) (bool, error) {
		o, err := c.in(secrets, api.Namespace).Get(ctx, secret, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		encoded, _, _ := unstructured.NestedString(o.Object, "data", corev1.ServiceAccountTokenKey)
		raw, err := base64.StdEncoding.DecodeString(encoded)
		token = string(raw)
		return token != "", err
	})
	if err != nil {
		return "", fmt.Errorf("wait for the token in Secret %s/%s: %w", api.Namespace, secret, err)
	}
	return token, nil
}

// Remove removes the account, and with it the token. Missing objects are not an error. The
// namespace stays, since the inventories are in it. The error is an *OwnedError if the account
// belongs to another member or fleet.
func (a Account) Remove(ctx context.Context, cfg *rest.Config) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	if err := c.owned(ctx, a); err != nil {
		return err
	}
	var errs []error
	for _, m := range []struct {
		resource        schema.GroupVersionResource
		namespace, name string
	}{
		{secrets, api.Namespace, tokenName(a.Name)},
		{serviceAccounts, api.Namespace, a.Name},
		{bindings, api.Namespace, a.Name},
		{roles, api.Namespace, a.Name},
		{clusterBindings, "", a.Name},
		{clusterRoles, "", a.Name}, // last, since it records whom the account belongs to
	} {
		if err := c.in(m.resource, m.namespace).Delete(ctx, m.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete %s %s: %w", m.resource.Resource, m.name, err))
		}
	}
	return errors.Join(errs...)
}
