/**
 * A compute backend as a run's facts name it.
 */
import type { BackendInfo } from "@gimbal-rl/compute";

/** Id and variant: two backends of one name compute the same bits. */
export function backendName({ id, variant }: Pick<BackendInfo, "id" | "variant">): string {
  return `${id} (${variant})`;
}
