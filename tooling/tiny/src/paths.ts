/** Where the build of the tiny policy reads and writes. */
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The model folder of the package `gimbal-tiny`. */
export const modelDir: string = `${root}packages/gimbal-tiny/model`;
/** Recorded demonstrations. */
export const demonstrationsDir: string = `${root}fixtures/demonstrations`;
/** Scratch: checkpoints of the SFT run, reports. Not in git. */
export const workDir: string = `${root}.gimbal/tiny`;
