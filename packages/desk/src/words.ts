/**
 * The closed list of names.
 *
 * Law: no word is a substring of another or of the fixed text around it, so that a word used as `oldText` is unique
 * in its file and `ls` and `sort` order the same in every locale. Lower-case ASCII, so each can be one BPE token.
 */
const joined: string =
  "acorn amber anchor apple arrow aspen badge basil beach birch blaze bloom bonus brass brick " +
  "bridge broom brush cabin cable camel candy canoe cargo cedar chalk cherry chest cider cliff " +
  "cloud clover cobalt comet copper coral cotton crane creek crown curry daisy delta denim diary " +
  "dingo dragon drift drum eagle easel echo elbow ember emu fable falcon feather fern fiddle " +
  "finch flame flint flute focus forest fossil fox frost galaxy garnet gecko ginger globe glove " +
  "goose gorge grape gravel guitar hammer harbor hazel helmet heron honey hotel igloo indigo " +
  "island ivory jacket jaguar jelly jewel jungle kayak kettle kiosk kiwi koala ladder lagoon lamp " +
  "lemon lilac lizard lobby locust lotus lunar lynx magnet mango maple marble meadow melon mint " +
  "mirror moss motel motor museum nectar needle nickel noodle nugget nutmeg oasis ocean olive " +
  "onion opal orbit orchid otter oxygen oyster paddle panda paper parrot peach pebble pecan " +
  "pepper piano pickle pigeon pillow planet plum pocket polar poppy pulse pumpkin puzzle quail " +
  "quartz quill rabbit radish raven ribbon river robin rocket saddle saffron salmon sandal satin " +
  "shadow shell silver sketch socket spruce squid stone sugar summit sunset swan tango teapot " +
  "temple thistle thunder tiger timber tomato topaz torch tulip tunnel turtle urchin valley vapor " +
  "velvet violin vortex waffle walnut walrus willow window winter wizard yeti yogurt zebra zephyr " +
  "zinc";

/** Every name, key and word value of the suite comes from this list. */
export const deskWords: readonly string[] = joined.split(" ");
