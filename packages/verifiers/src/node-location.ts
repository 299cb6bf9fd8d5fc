/**
 * Where grading finds Node. The caller says it; nothing here reads the environment.
 */

/** See {@link locateNode}. */
export interface NodeLocation {
  /** What to start. */
  readonly executable: string;
  /** `PATH` inside. */
  readonly path: string;
  /** Host paths that must be visible for it. */
  readonly readOnlyPaths: readonly string[];
}

const systemPath = "/usr/local/bin:/usr/bin:/bin";

/**
 * Where grading finds Node. The binary alone is shown: its folder may be one in which the host keeps other things.
 *
 * @param nodePath - Host path of the binary; undefined = the one on the sandbox's own PATH, which ends at the system's
 * folders: a Node from nvm or volta is not on it.
 */
export function locateNode(nodePath: string | undefined): NodeLocation {
  if (nodePath === undefined) return { executable: "node", path: systemPath, readOnlyPaths: [] };
  const folder = nodePath.slice(0, nodePath.lastIndexOf("/"));
  return {
    executable: nodePath,
    path: `${folder}:${systemPath}`,
    readOnlyPaths: folder.startsWith("/usr/") ? [] : [nodePath],
  };
}
