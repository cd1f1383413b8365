package api

// neverRecreated are the kinds whose deletion deletes more than the object itself.
var neverRecreated = map[GroupKind]bool{
	{Kind: "Namespace"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	{Kind: "PersistentVolumeClaim"}:                                   true,
	{Kind: "PersistentVolume"}:                                        true,
}

// Recreatable reports whether objects of a kind may have a RecreateAnnotation: not those whose
// deletion deletes more than the object itself.
func Recreatable(kind GroupKind) bool { return !neverRecreated[kind] }
