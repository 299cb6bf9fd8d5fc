/**
 * What the stored attempts of a folder were made with.
 *
 * Law: stored attempts are not run again, so attempts of one label all come from the same weights, harness, seed and
 * temperature; anything else would be reported under a name that is not its own.
 */
import { GimbalError, type Store } from "@gimbal-rl/core";

/** Event kind of what attempts of one label were made with. */
const suiteStartKind = "suite-start";

/**
 * Compares with the settings stored for a label, and stores them the first time.
 * @throws {GimbalError} `config-invalid`, naming what differs.
 */
export async function assertSameSettings(
  store: Store,
  label: string,
  runDir: string,
  settings: Readonly<Record<string, string | number>>,
): Promise<void> {
  if (await store.append(suiteStartKind, label, settings)) return;
  const stored = ((await store.get(suiteStartKind, label))?.data ?? {}) as typeof settings;
  const differing = Object.keys(settings).filter((name) => stored[name] !== settings[name]);
  if (differing.length === 0) return;
  const words = differing.map((name) => `${name} ${stored[name]}, now ${settings[name]}`);
  throw new GimbalError(
    "config-invalid",
    `${runDir} holds attempts "${label}" that were made with other settings (${words.join("; ")}). Name another folder with --run.`,
  );
}
