package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// kubeconfigs gives the daemon its own directory of kubeconfigs, with that of member-1 changed. The
// daemon may do everything, as a user of its own.
func (d *daemon) kubeconfigs(change func(*clientcmdapi.Config)) {
	d.t.Helper()
	dir := d.t.TempDir()
	for _, m := range d.fleet.Members() {
		config, err := clientcmd.LoadFromFile(m.Kubeconfig)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, user := range config.AuthInfos {
			user.Impersonate, user.ImpersonateGroups = d.user(), []string{"system:masters"}
		}
		if m.Name == "member-1" {
			change(config)
		}
		if err := clientcmd.WriteToFile(*config, filepath.Join(dir, m.Name+".kubeconfig")); err != nil {
			d.t.Fatal(err)
		}
	}
	d.args[slices.Index(d.args, "--kubeconfig-dir")+1] = dir
}

// account creates a service account on member-1 with some rules only, and returns its token.
func (d *daemon) account(name string, rules []rbac.PolicyRule) string {
	d.t.Helper()
	ctx, client, meta := context.Background(), d.clients["member-1"], metav1.ObjectMeta{Name: d.name + "-" + name}
	_, err := client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, &rbac.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbac.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbac.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: meta.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = client.RbacV1().ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{})
		_ = client.RbacV1().ClusterRoles().Delete(ctx, meta.Name, metav1.DeleteOptions{})
		_ = client.CoreV1().ServiceAccounts("default").Delete(ctx, meta.Name, metav1.DeleteOptions{})
	})
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, meta.Name, &authentication.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return token.Status.Token
}

// grant replaces the rules of an account.
func (d *daemon) grant(name string, rules []rbac.PolicyRule) {
	d.t.Helper()
	roles := d.clients["member-1"].RbacV1().ClusterRoles()
	role, err := roles.Get(context.Background(), d.name+"-"+name, metav1.GetOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	role.Rules = rules
	if _, err := roles.Update(context.Background(), role, metav1.UpdateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// If the credentials of a cluster lack several permissions, all of them are reported at once,
// in every output, and the cluster is used as soon as they are granted, without a restart.
func TestMissingPermissionsAreReported(t *testing.T) {
	t.Parallel()
	all := []rbac.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
	}
	some := []rbac.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: all[0].Verbs},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
	}
	d := newDaemon(t)
	token := d.account("account", some)
	d.kubeconfigs(func(c *clientcmdapi.Config) {
		for user := range c.AuthInfos {
			c.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
		}
	})
	commit := d.repo.Commit(t, "main", map[string]string{
		"apps/one.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"web.yaml":      yamlPlacement(d.name, d.name, ""),
	})
	d.start()
	const missing = "permissions are missing: watch configmaps; create, delete, patch configmaps in namespace gitfleet-system; create, delete, patch configmaps in namespace "
	for _, args := range [][]string{{"status"}, {"describe", "mc", "member-1"}, {"sync", "--wait"}} {
		var out string
		var code int
		d.eventually(strings.Join(args, " ")+" names what is missing", func() bool {
			out, code = d.cli(args...)
			return strings.Contains(strings.Join(strings.Fields(out), " "), missing+d.name)
		})
		if strings.Contains(out, "unreachable") || args[0] != "describe" && code != 1 {
			t.Errorf("gitfleet %s: exit code %d\n%s", strings.Join(args, " "), code, out)
		}
	}
	d.grant("account", all)
	d.applied(commit)
	d.eventually("status is content", func() bool {
		out, _ := d.cli("status")
		return !strings.Contains(out, "permissions are missing")
	})
}

// A cluster whose port is closed is reported as unreachable: not as an API server that refused
// something, and no object counts as failed.
func TestClosedPortIsUnreachable(t *testing.T) {
	t.Parallel()
	const closed = "127.0.0.1:1" // a port that no parallel test can be given
	d := newDaemon(t)
	d.kubeconfigs(func(*clientcmdapi.Config) {})
	first := d.repo.Commit(t, "main", map[string]string{
		"apps/one.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a"),
		"web.yaml":      yamlPlacement(d.name, d.name, ""),
	})
	d.start()
	d.applied(first)
	d.stop()
	d.kubeconfigs(func(c *clientcmdapi.Config) {
		for _, cluster := range c.Clusters {
			cluster.Server = "https://" + closed
		}
	})
	d.repo.Commit(t, "main", map[string]string{"apps/one.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "b")})
	d.start()
	d.until("unreachable", func(r *status.Report) bool {
		out, _ := d.cli("status")
		said := strings.Join(strings.Fields(out), " ")
		return strings.Contains(said, "member-1 unreachable for ") && strings.Contains(said, "connection refused") && !strings.Contains(said, "returned by the API server")
	})
	if out, _ := d.cli("history", "crp/"+d.name); strings.Contains(out, "failed") {
		t.Errorf("the history records a failure:\n%s", out)
	}
}
