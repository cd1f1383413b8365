package membership

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/reconciler/member/account"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
)

// A memberTarget is a member cluster with the access that the user has to it.
type memberTarget struct {
	kubeconfig, context, account, fleet string
}

func (m *memberTarget) bind(f *pflag.FlagSet) {
	f.StringVar(&m.context, "context", "", "context of your kubeconfig with administrator access to the member")
	f.StringVar(&m.kubeconfig, "kubeconfig", "", "your kubeconfig; by default that of kubectl")
	f.StringVar(&m.fleet, "fleet-name", "", "name of the fleet, if the member is in several: each has an account of its own, gitfleet-NAME")
	f.StringVar(&m.account, "account", "", "name of the service account, its roles and their bindings (default "+account.DefaultName+")")
}

// accountOf returns the account that the fleet has on a member.
func (m *memberTarget) accountOf(member string) (account.Account, error) {
	a := account.Account{Name: m.account, Member: member, Fleet: m.fleet}
	if a.Name == "" {
		a.Name = strings.TrimSuffix(account.DefaultName+"-"+m.fleet, "-")
	}
	if wrong := validation.IsDNS1123Subdomain(a.Name); len(wrong) > 0 {
		return a, fmt.Errorf("%q cannot be the name of a service account; choose one with --account: %s", a.Name, strings.Join(wrong, "; "))
	}
	return a, nil
}

// find returns the cluster of the context.
func (m *memberTarget) find() (*account.Target, error) {
	return account.Find(account.Kubeconfigs(m.kubeconfig), m.context)
}

// kindsHeld adds the objects of inventories to the content that an account needs permissions
// for.
func kindsHeld(held []inventory.Holding, c *rbac.Content, resources rbac.Resources) {
	for _, h := range held {
		for _, o := range h.Objects {
			c.Add(resources.Of(o.GroupVersionKind()), o.Namespace)
		}
	}
}

// accountError adds advice to the error about an account that belongs to another member.
func accountError(err error) error {
	if _, owned := errors.AsType[*account.OwnedError](err); owned {
		return fmt.Errorf("%w; name the fleet with --fleet-name, or another account with --account", err)
	}
	return err
}
