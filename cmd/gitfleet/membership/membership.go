// Package membership has the commands that declare member clusters, and give the daemon access to
// them: init and member.
package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/kubeconfig"
)

// NewMember returns the command member.
func NewMember() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Join clusters to the fleet and remove them",
		Long: `Create the service account with which the daemon manages a member cluster, print
its permissions, and remove it again. These commands use your own credentials,
and ask no daemon.`,
	}
	cmd.AddCommand(newMemberJoin(), newMemberRBAC(), newMemberLeave())
	return cmd
}

// A joinCommand has the arguments of member join.
type joinCommand struct {
	memberTarget
	memberAccess
	labels                         map[string]string
	kubeconfigDir, secretNamespace string
	write                          bool
}

// newMemberJoin returns the command member join.
func newMemberJoin() *cobra.Command {
	var j joinCommand
	cmd := &cobra.Command{
		Use:   "join NAME --context CONTEXT",
		Short: "Create the service account for a member and its kubeconfig",
		Long: `Join creates on the cluster of a context, with your own credentials: the
namespace ` + api.Namespace + `, a service account, a ClusterRole and a Role with
their bindings, and a Secret with a token that does not expire. It can be
repeated: it then brings the permissions up to date, and the token stays the
same. On a cluster that is a member of several fleets name the fleet with
--fleet-name: each then has an account with its own permissions.

With --path the account may read and write only the kinds that the checkout
places on the member, or may place there later, those that gitfleet already
holds there, and what gitfleet itself needs. If a commit places another kind,
"gitfleet status" names the missing permissions; repeat join, or apply the
output of "gitfleet member rbac".

The kubeconfig for the daemon goes to NAME.kubeconfig in --kubeconfig-dir. With
--secret-namespace the manifest of a Secret is printed instead, for a daemon
with members.secretNamespace. The MemberCluster to commit is written into the
checkout with --write, and printed otherwise; to standard error if the Secret is
printed.`,
		Example: `  gitfleet member join paris --context paris-admin --path fleet --write \
    --kubeconfig-dir members
  gitfleet member join paris --context paris-admin --path fleet \
    --secret-namespace gitfleet | kubectl apply -f -
  gitfleet member join oslo --context oslo-admin --cluster-admin \
    --kubeconfig-dir members`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return j.run(cmd, api.ClusterName(args[0]))
		},
	}
	j.memberTarget.bind(cmd.Flags())
	j.memberAccess.bind(cmd.Flags())
	cmd.Flags().StringVar(&j.path, "path", "", "checkout of the repository; the account gets the permissions that its content needs")
	cmd.Flags().StringVar(&j.kubeconfigDir, "kubeconfig-dir", "", "directory for NAME.kubeconfig, the daemon's members.kubeconfigDir")
	cmd.Flags().StringVar(&j.secretNamespace, "secret-namespace", "", "print a Secret with the kubeconfig for this namespace of the daemon's cluster")
	cmd.Flags().StringToStringVar(&j.labels, "label", nil, "labels of the MemberCluster, as `KEY=VALUE`")
	cmd.Flags().Lookup("label").DefValue = ""
	cmd.Flags().BoolVar(&j.write, "write", false, "write the MemberCluster into the checkout, to clusters/NAME.yaml")
	cmd.MarkFlagRequired("context")
	return cmd
}

func (j *joinCommand) check() error {
	switch {
	case j.path == "" && !j.clusterAdmin:
		return errors.New("the permissions of the account are missing: set --path CHECKOUT for those that its content needs, or --cluster-admin for all")
	case (j.kubeconfigDir == "") == (j.secretNamespace == ""):
		return errors.New("set where to write the kubeconfig for the daemon: either --kubeconfig-dir DIR or --secret-namespace NAMESPACE")
	case j.write && j.path == "":
		return errors.New("--write needs --path: the checkout to write the MemberCluster into")
	}
	return nil
}

func (j *joinCommand) run(cmd *cobra.Command, name string) error {
	if err := j.check(); err != nil {
		return err
	}
	manifest, err := memberManifestOf(name, j.labels)
	if err != nil {
		return err
	}
	if _, err := hub.ReadClusters("the MemberCluster", []byte(manifest)); err != nil {
		return err
	}
	target, err := j.find()
	if err != nil {
		return err
	}
	j.cluster = name
	derived, err := j.roles(cmd.Context(), manifest, target)
	if err != nil {
		return err
	}
	joined, err := j.accountOf(name)
	if err != nil {
		return err
	}
	joined.Roles = derived.roles
	token, err := joined.Apply(cmd.Context(), target.Config)
	if err != nil {
		return accountError(err)
	}
	kubeconfig, err := target.Kubeconfig(name, token)
	if err != nil {
		return err
	}
	notes := cmd.ErrOrStderr()
	fmt.Fprintf(notes, "service account %s/%s on %s is ready\n", api.Namespace, joined.Name, name)
	if j.fleet == "" && len(derived.fleets) > 0 {
		fmt.Fprintf(notes, "the cluster is a member of the fleet %s; if yours is another, join with --fleet-name, or both share the account\n", strings.Join(derived.fleets, ", "))
	}
	manifests := cmd.OutOrStdout()
	if j.secretNamespace != "" {
		manifests = notes
		if err := writeYAML(cmd.OutOrStdout(), kubeconfigSecret(name, j.secretNamespace, kubeconfig)); err != nil {
			return err
		}
	} else if err := j.writeKubeconfig(cmd.Context(), name, kubeconfig); err != nil {
		return err
	} else {
		fmt.Fprintf(notes, "wrote %s\n", filepath.Join(j.kubeconfigDir, name+".kubeconfig"))
	}
	switch {
	case derived.declared != "":
		fmt.Fprintf(notes, "MemberCluster %s is declared in %s\n", name, derived.declared)
		if len(j.labels) > 0 {
			fmt.Fprintln(notes, "its labels are those of the file: --label changes nothing there")
		}
	case j.write:
		file := filepath.Join("clusters", name+".yaml")
		if err := writeNew(j.path, map[string]string{file: manifest}); err != nil {
			return err
		}
		fmt.Fprintf(notes, "wrote %s; commit it\n", filepath.Join(j.path, file))
	default:
		_, err = fmt.Fprint(manifests, manifest)
	}
	return err
}

// writeKubeconfig writes the kubeconfig of a member, and checks that the daemon can read it.
func (j *joinCommand) writeKubeconfig(ctx context.Context, name string, content []byte) error {
	if err := os.MkdirAll(j.kubeconfigDir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(j.kubeconfigDir, name+".kubeconfig")
	if err := atomicfile.Write(file, func(w io.Writer) error { _, err := w.Write(content); return err }); err != nil {
		return err
	}
	_, err := kubeconfig.Sources{Dir: j.kubeconfigDir}.Config(ctx, name, "")
	if err != nil {
		return fmt.Errorf("the daemon will not use the kubeconfig: %w", err)
	}
	return nil
}

// kubeconfigSecret returns the Secret in which a daemon with members.secretNamespace finds
// the kubeconfig of a member.
func kubeconfigSecret(name, namespace string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name + "-kubeconfig", Namespace: namespace},
		Type:       corev1.SecretTypeOpaque,
		StringData: map[string]string{"value": string(kubeconfig)},
	}
}

// memberManifestOf returns the manifest of a MemberCluster.
func memberManifestOf(name string, labels map[string]string) (string, error) {
	manifest := fmt.Sprintf(memberManifest, name)
	if len(labels) == 0 {
		return manifest, nil
	}
	text, err := yaml.Marshal(labels)
	if err != nil {
		return "", err
	}
	indented := "  labels:\n    " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ") + "\n"
	return strings.Replace(manifest, "spec:\n", indented+"spec:\n", 1), nil
}

// newMemberLeave returns the command member leave.
func newMemberLeave() *cobra.Command {
	var at memberTarget
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use:   "leave NAME --context CONTEXT",
		Short: "Remove the service account of a member",
		Long: `Leave removes what join created on a cluster: the service account, its roles,
their bindings and the token. Workloads and the namespace ` + api.Namespace + ` stay.

Remove the MemberCluster from the repository first, and wait until the daemon
has given up what it holds there. As long as an inventory on the cluster lists
objects, leave removes nothing, unless --force is set.`,
		Example: `  gitfleet member leave paris --context paris-admin --kubeconfig-dir members`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := api.ClusterName(args[0])
			target, err := at.find()
			if err != nil {
				return err
			}
			held, err := inventory.Holdings(cmd.Context(), target.Config)
			if err != nil {
				return err
			}
			if text := describeHoldings(held); text != "" && !force {
				return fmt.Errorf("gitfleet still holds objects on %s:\n%sRemove the MemberCluster from the repository and wait until the daemon has given them up; --force removes the account all the same", name, text)
			}
			left, err := at.accountOf(name)
			if err != nil {
				return err
			}
			if err := left.Remove(cmd.Context(), target.Config); err != nil {
				return accountError(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "service account %s/%s on %s is removed\n", api.Namespace, left.Name, name)
			if dir == "" {
				return nil
			}
			if err := os.Remove(filepath.Join(dir, name+".kubeconfig")); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		},
	}
	at.bind(cmd.Flags())
	cmd.Flags().StringVar(&dir, "kubeconfig-dir", "", "directory from which to remove NAME.kubeconfig")
	cmd.Flags().BoolVar(&force, "force", false, "remove the account although gitfleet holds objects on the cluster")
	cmd.MarkFlagRequired("context")
	return cmd
}

// describeHoldings lists what fleets hold on a cluster, a line for each inventory; empty if
// they hold nothing.
func describeHoldings(held []inventory.Holding) string {
	var b strings.Builder
	for _, h := range held {
		whose := cmp.Or(h.Placement, "an unknown placement") + " of fleet " + h.Fleet
		switch {
		case h.Damaged != "":
			fmt.Fprintf(&b, "  %s: the inventory is damaged: %s\n", whose, h.Damaged)
		case len(h.Objects) > 0:
			fmt.Fprintf(&b, "  %s: %s\n", whose, output.Count(len(h.Objects), "object"))
		}
	}
	return b.String()
}
